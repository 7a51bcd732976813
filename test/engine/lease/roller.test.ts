/** The process that rolls is stopped in its function for longer than its lease, and woken while another one rolls. */
import { fileTickets, isDrainableError, resumeRoll, type RollReport, type Ticket } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { describe, it } from 'vitest'
import { workDir } from '../../support/envoy/proxy.js'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { startLineChild } from '../../support/line-child.js'
import { openLease, startServer } from '../../support/lease-clients.js'
import type { RollChildOptions } from '../../support/roll-child.js'

const LIMIT = 60_000

interface Line {
  readonly act?: string
  readonly attempt?: number
  readonly told?: string
  readonly report?: string
  readonly code?: string
}

const startChild = (options: RollChildOptions) => startLineChild<Line>('roll-child.ts', options)

/** The states that were set so far, in order. */
function changes({ requests }: HaproxyFake): readonly string[] {
  return requests.flatMap(({ line }) => line.match(/set server \S+ state \w+/g) ?? [])
}

const all = (['redis', 'nats'] as const).flatMap((kind) =>
  engines(kind).map((engine) => [kind, engine] as const),
)

describe.each(all)('a roll under a lease of %s', (kind, engine) => {
  it('stops acting when it wakes after its lease, while another one acts', async ({ expect }) => {
    await using server = await startServer(kind, engine)
    await using fake = await startFake({ pools: { web: ['web1', 'web2', 'web3'] } })
    await using dir = await workDir()
    const { port } = server
    const { socket } = fake
    const address = typeof socket === 'string' ? socket : `${socket.host}:${socket.port}`
    await using child = startChild({ socket: address, engine: kind, port, folder: dir.path })
    await until(() => child.said.length > 0, 'the child acts', LIMIT)
    child.kill('SIGSTOP')

    await using open = await openLease(kind, port, 'edge')
    await using lb = haproxyRuntime({ socket })
    const tickets = fileTickets(dir.path)
    const calls: string[] = []
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    let finish = (): void => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    /** Asks again as long as the one that was stopped may still have the lease. */
    const roll = async (): Promise<RollReport> => {
      for (;;) {
        const ticket = (await tickets.get('deploy')) as Ticket
        const report = await resumeRoll(lb, ticket, {
          tickets,
          lease: open.lease,
          leaseTtl: '3s',
          act: async ({ ref, attempt }) => {
            calls.push(`${ref.member} ${attempt}`)
            begin()
            await finished
          },
        }).done
        if (calls.length > 0 || !isDrainableError(report.error, 'NOT_LEADER')) return report
      }
    }
    const rolled = roll()
    await begun
    const before = changes(fake)
    child.kill('SIGCONT')
    await child.closed
    expect(child.said).toEqual([
      { act: 'web1', attempt: 1 },
      { told: 'NOT_LEADER' },
      { report: 'stopped', code: 'NOT_LEADER' },
    ])
    expect(changes(fake)).toEqual(before)
    finish()
    expect(await rolled).toMatchObject({ outcome: 'done', leftDrained: [] })
    expect(calls).toEqual(['web1 2', 'web2 1', 'web3 1'])
    expect(await tickets.get('deploy')).toBeUndefined()
  })
})
