/**
 * From the last byte at the backend to `idle`, on the newest HAProxy of the engines folder: 200
 * drains with `settle: 0` and 200 with the defaults, each with a request of more than 1.1 s in flight.
 *
 * `npm run bench haproxy-runtime/latency`
 */
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { engines } from '../../test/support/engines.js'
import { Haproxy, until } from '../../test/support/haproxy.js'
import { Backend, request } from '../../test/support/haproxy-traffic.js'

const AT_ONCE = 20
const ROUNDS = 10
/** Longer than HAProxy can hide a retry, so that the quiet time has passed when the request ends. */
const REQUEST = 1_500

const names = Array.from({ length: AT_ONCE }, (_, index) => `s${index}`)
const engine = engines('haproxy').at(-1)
if (engine === undefined) throw new Error('no HAProxy: npm run engines')

await using haproxy = await Haproxy.start({
  engine,
  config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
${names.map((name) => `  server ${name} 127.0.0.1:${port(name)} cookie ${name}`).join('\n')}
  server rest 127.0.0.1:${port('rest')}`,
})
await using stack = new AsyncDisposableStack()
const backends = new Map<string, Backend>()
for (const name of names) {
  backends.set(name, stack.use(await Backend.start(haproxy.port(name), name)))
}

async function measure(name: string, settle: 0 | undefined, after: number): Promise<number> {
  const backend = backends.get(name)
  if (backend === undefined) throw new Error(name)
  const answer = request(haproxy.port('web'), '/hold', { cookie: name })
  await until(() => backend.active === 1, 'in flight')
  const drained = startDrain(
    lb,
    { pool: 'web', member: name },
    { timeout: '30s', keepReady: 0, ...(settle === undefined ? {} : { settle }) },
  )
  let idleAt = 0
  drained.on('idle', () => (idleAt = performance.now()))
  await new Promise((resolve) => setTimeout(resolve, REQUEST + after))
  backend.release()
  await answer
  const report = await drained.done
  if (report.outcome !== 'idle' || idleAt < backend.lastByteAt) throw new Error('a wrong verdict')
  await drained.close()
  await haproxy.cli(`set server web/${name} state ready`)
  return idleAt - backend.lastByteAt
}

function quantile(sorted: readonly number[], share: number): string {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
  return `${value.toFixed(1)} ms`
}

await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
console.log(
  `HAProxy ${haproxy.version}, ${AT_ONCE} drains at once, requests of ${REQUEST} ms and more`,
)
for (const settle of [0, undefined] as const) {
  const took: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    // Spread over a quarter of a second: the last bytes shall not come all at once.
    const all = names.map((name, index) => measure(name, settle, (index * 250) / AT_ONCE))
    took.push(...(await Promise.all(all)))
  }
  const sorted = took.sort((a, b) => a - b)
  console.log(
    `last byte to idle, ${settle === 0 ? 'settle: 0' : 'defaults '}: p50 ${quantile(sorted, 0.5)}, p99 ${quantile(sorted, 0.99)}, n ${sorted.length}`,
  )
}
