/**
 * A roll under a lease, to be stopped and woken by its parent. It says `act` for each call of its function, which goes on
 * until its signal fires (`told`), and its `report` at the end.
 * `node --import scripts/source.mjs roll-child.ts OPTIONS`
 */
import { fileTickets, isDrainableError, startRoll } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { openLease, type LeaseEngine } from './lease-clients.js'

/** What the parent says. */
export interface RollChildOptions {
  readonly socket: string
  readonly engine: LeaseEngine
  readonly port: number
  readonly folder: string
}

const options = JSON.parse(process.argv[2] ?? '{}') as RollChildOptions
const say = (what: object): void => console.log(JSON.stringify(what))
const codeOf = (thrown: unknown): string => (isDrainableError(thrown) ? thrown.code : 'none')
const { lease } = await openLease(options.engine, options.port, 'edge')
const run = startRoll(
  haproxyRuntime({ socket: options.socket }),
  { pool: 'web' },
  {
    id: 'deploy',
    tickets: fileTickets(options.folder),
    lease,
    leaseTtl: '3s',
    settle: '0ms',
    group: 'ref', // the fake has one address for all
    waitHealthy: false,
    act: async ({ ref, attempt, signal }) => {
      say({ act: ref.member, attempt })
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
      say({ told: codeOf(signal.reason) })
    },
  },
)
const { outcome, error } = await run.done
say({ report: outcome, code: codeOf(error) })
process.exit()
