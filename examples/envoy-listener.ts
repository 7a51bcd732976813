/**
 * The preStop hook of a gateway pod: Envoy fails its health check, what is in front of it notices, the last request
 * ends, and only then Envoy is told to quit. The pod dies anyway, so nothing is refused, and what is left is said.
 *
 * The Envoy is the stand-in of `drainable/testing/envoy-listener`. Give ADMIN (and GRACE_SECONDS, CHECKS) for a real one:
 *
 *   ADMIN=http://127.0.0.1:9901 GRACE_SECONDS=60 CHECKS=3 npm run example envoy-listener
 */
import { drain, isDrainableError } from 'drainable'
import { envoyListener } from 'drainable/envoy-listener'
import { startFake } from 'drainable/testing/envoy-listener'

const { ADMIN, GRACE_SECONDS = '30', CHECKS = '3' } = process.env
/** Of the grace period, left for Envoy to end and for the hook itself. */
const MARGIN = 5_000

if (ADMIN === undefined) await onStandIn()
else await preStop(ADMIN)

async function preStop(admin: string): Promise<void> {
  await using proxy = envoyListener({ admin, noticed: { checks: Number(CHECKS) } })
  try {
    const timeout = Math.max(Number(GRACE_SECONDS) * 1_000 - MARGIN, 1_000)
    // keepReady: the pod goes whoever else is there, and this hook sees no other gateway.
    const policy = { timeout, onTimeout: 'proceed', keepReady: 0 } as const
    await drain(proxy, { pool: 'envoy' }, policy, async (report) => {
      for (const { verifiedIdle, proof, why } of report.members) {
        const left = why.map(({ text }) => text).join('; ')
        console.log(verifiedIdle ? (proof?.text ?? 'idle') : `left: ${left}`)
      }
      await proxy.quit()
    })
  } catch (error) {
    // A hook that fails must not be worse than none.
    console.error(isDrainableError(error) ? `${error.code}: ${error.message}` : error)
  }
}

async function onStandIn(): Promise<void> {
  await using fake = await startFake({ checkInterval: 200 })
  fake.connect('idle') // a keep-alive client: it stays, and is not waited for
  const end = await fake.occupy()
  setTimeout(() => void end(), 1_500)
  await preStop(fake.url)
  console.log(`told to quit: ${fake.told.quit}`)
}
