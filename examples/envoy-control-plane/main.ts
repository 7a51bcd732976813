/**
 * Your own control plane drains an endpoint, and this program says when it is idle.
 *
 * The control plane is go-control-plane (`main.go` beside this file, built by `npm run engines -- go-control-plane`). It feeds
 * two Envoys, the stand-ins of `drainable/testing/envoy`, one of them with a request in flight. Give ADMIN (and POOL,
 * MEMBER) to watch an endpoint of real ones that another control plane drains:
 *
 *   ADMIN=http://10.0.0.7:9901,http://10.0.0.8:9901 POOL=web MEMBER=10.0.0.1:8080 npm run example envoy-control-plane/main
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { watch, type DrainableProvider } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { readEngines } from '../../scripts/engines/manifest.ts'

const { ADMIN, POOL = 'web', MEMBER = '10.0.0.1:8080' } = process.env
const member = { pool: POOL, member: MEMBER }

if (ADMIN === undefined) await onStandIns()
else {
  await using lb = envoy({ endpoints: observedEndpoints(), admin: ADMIN.split(',') })
  await sayIdle(lb)
}

/** Looks until the endpoint is idle in every proxy, whoever drains it. Nothing is changed. */
async function sayIdle(lb: DrainableProvider): Promise<void> {
  await using run = watch(lb, member)
  let shown = ''
  for await (const event of run) {
    const text = event.type === 'load' ? (event.why[0]?.text ?? '') : event.type
    if (text !== shown) console.log((shown = text))
    if (event.type !== 'idle') continue
    console.log(event.proof.text)
    return
  }
}

async function onStandIns(): Promise<void> {
  const [program] = readEngines('go-control-plane')
  if (program === undefined) {
    console.log('no control plane: run "npm run engines -- go-control-plane" (needs Go)')
    // In CI it is installed: an example that did not run is a failure there.
    process.exitCode = (process.env['CI'] ?? '') === '' ? 0 : 1
    return
  }
  const plane = spawn(program.path, ['0', 'one', 'two'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: plane.stdout })[Symbol.asyncIterator]()
  const port = String((await lines.next()).value)
  const publish = async (version: string, status: string): Promise<void> => {
    const sets = {
      web: [
        { address: '10.0.0.1', port: 8080, status },
        { address: '10.0.0.2', port: 8080, status: 'HEALTHY' },
      ],
    }
    plane.stdin.write(`${JSON.stringify({ version, clusters: {}, sets })}\n`)
    await lines.next()
  }
  try {
    await publish('1', 'HEALTHY')
    const eds = { grpc: `http://127.0.0.1:${port}`, ads: true }
    await using one = await startFake({ pools: { web: [] }, node: 'one', eds })
    await using two = await startFake({ pools: { web: [] }, node: 'two', eds })
    await using lb = envoy({ endpoints: observedEndpoints(), admin: [one.url, two.url] })
    const end = await two.occupy(member)
    setTimeout(() => void publish('2', 'DRAINING'), 300)
    setTimeout(() => void end(), 1_500)
    await sayIdle(lb)
  } finally {
    plane.kill()
    await once(plane, 'exit')
  }
}
