/**
 * A deploy over a fleet, to be killed by its parent in the middle: begins a roll, or goes on with the one in its folder.
 * It says each event, and its report at the end, as lines of JSON.
 * `node --import scripts/source.mjs fleet-roller.ts OPTIONS`
 */
import { combineProviders, fileTickets, resumeRoll, startRoll } from 'drainable'
import type { RollOptions, Ticket } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { haproxyRuntime } from 'drainable/haproxy-runtime'

/** What the parent says. */
export interface RollerOptions {
  readonly edgeA: { readonly socket: string; readonly master: string }
  readonly edgeB: { readonly socket: string; readonly master: string }
  readonly mesh: { readonly admin: string; readonly file: string }
  /** Where a server is restarted: `POST /ADDRESS`. */
  readonly control: string
  readonly folder: string
}

const { edgeA, edgeB, mesh, control, folder } = JSON.parse(process.argv[2] ?? '{}') as RollerOptions
await using all = combineProviders({
  edgeA: haproxyRuntime(edgeA),
  edgeB: haproxyRuntime(edgeB),
  mesh: envoy({
    endpoints: fileEndpoints({ cluster: 'web', path: mesh.file }),
    admin: [mesh.admin],
  }),
})
const tickets = fileTickets(folder)
const id = 'deploy'
const act: RollOptions['act'] = async ({ address = '' }) => {
  const answer = await fetch(`${control}/${address}`, { method: 'POST' })
  if (!answer.ok) throw new Error(`${address} did not come back: ${answer.status}`)
}
const old = (await tickets.get(id)) as Ticket | undefined
const run =
  old === undefined
    ? startRoll(
        all,
        ['edgeA', 'edgeB', 'mesh'].map((balancer) => ({ pool: 'web', balancer })),
        {
          act,
          tickets,
          id,
          canary: 1,
          maxUnavailable: 3,
          keepReady: 5,
          settle: '300ms',
          timeout: '8s',
          waitHealthy: '30s',
        },
      )
    : resumeRoll(all, old, { act, tickets })
for await (const event of run) {
  if (event.type === 'load' || event.type === 'roll-end') continue
  const address = 'address' in event ? event.address : undefined
  const attempt = 'attempt' in event ? event.attempt : undefined
  console.log(JSON.stringify({ type: event.type, address, attempt }))
}
const { outcome, servers, leftDrained } = await run.done
const failed = servers.flatMap(({ error }) => (error === undefined ? [] : [error.message]))
console.log(JSON.stringify({ type: 'report', outcome, failed, leftDrained }))
