/**
 * How long after the last request of a gateway its hook says "stop me now", on one Envoy in one run: by us, by a fixed
 * sleep, and by a wait for `server.total_connections` to fall to 0, which the shutdown managers of gateways do.
 *
 * Two clients stay connected without asking for anything; what is in front checks the health every 100 ms and takes
 * the gateway out after three failures. One run has its last request end after 2 s, one after 12 s.
 *
 *   npm run bench envoy-listener/stop
 */
import { drain } from 'drainable'
import { engines } from '../../test/support/engines.js'
import { ask } from '../../test/support/envoy/client.js'
import { delay, until } from '../../test/support/wait.js'
import { idleClient, startGateway, TARGET } from '../../test/support/envoy-gateway.js'

/** The sleep of many a preStop hook. */
const SLEEP = 10_000
/** No wait here is longer. */
const PATIENCE = 30_000
const engine = engines('envoy').at(-1)

if (engine === undefined) console.log('no Envoy to measure with: run "npm run engines"')
else {
  console.log(`Envoy ${engine.version}; ms from the end of the last request to "stop me now"`)
  for (const held of [2_000, 12_000]) await measure(engine.path, held)
}

async function measure(path: string, held: number): Promise<void> {
  await using gateway = await startGateway(path, { provider: { noticed: { checks: 3 } } })
  const { proxy, provider, stage } = gateway
  const idle = [await idleClient(proxy.http), await idleClient(proxy.http)]
  void ask(proxy.http, '/hold').catch(() => undefined)
  const inFlight = () => stage.backends.reduce((sum, backend) => sum + backend.held, 0)
  await until(() => inFlight() === 1, 'a request in flight')
  let endedAt = Infinity
  const begun = performance.now()
  const last = delay(held).then(() => {
    endedAt = performance.now()
    for (const backend of stage.backends) backend.release()
  })
  const ours = drain(provider, TARGET, { timeout: '60s', keepReady: 0 }, () =>
    Promise.resolve(performance.now()),
  )
  const slept = delay(SLEEP).then(() => performance.now())
  const total = connectionsGone(begun)
  const [us, sleep, connections] = await Promise.all([ours, slept, total])
  await last
  console.log(`  the last request ends after ${held / 1_000} s`)
  console.log(`    drainable:                  ${words(us - endedAt)}`)
  console.log(`    a sleep of ${SLEEP / 1_000} s:            ${words(sleep - endedAt)}`)
  console.log(
    `    server.total_connections 0: ${connections === undefined ? `not within ${PATIENCE / 1_000} s` : words(connections - endedAt)}`,
  )
  for (const socket of idle) socket.destroy()

  async function connectionsGone(from: number): Promise<number | undefined> {
    // The gauge is renewed once in 5 s: what it says before is of before.
    await delay(6_000)
    while (performance.now() - from < PATIENCE) {
      const text = await proxy.get('/stats?filter=^server.total_connections$')
      if (text.trim().endsWith(': 0')) return performance.now()
      await delay(100)
    }
    return undefined
  }
}

function words(ms: number): string {
  return ms < 0 ? `${Math.round(-ms)} ms too early, the request is cut` : `${Math.round(ms)} ms`
}
