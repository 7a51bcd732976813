/** What a resumed roll that does not get to begin says of the servers in its ticket. */
import { describe, expect, test } from 'vitest'
import {
  resumeRoll,
  startRoll,
  type ResumeRollOptions,
  type RollReport,
  type Ticket,
} from 'drainable'
import { fakeLease } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'
import { actor, setUp, web } from './set-up.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** A roll whose act failed for web1, which stays drained. */
async function failed(rig: ReturnType<typeof setUp>): Promise<Ticket> {
  const tickets = jsonStore()
  const { act } = actor(rig.clock, () => Promise.reject(new Error('exit 1')))
  const options = { act, clock: rig.clock, tickets, id: 'job' }
  await rig.clock.runUntil(startRoll(rig.lb, web, options).done)
  return (await tickets.get('job')) as Ticket
}

function namesWhatIsLeft(report: RollReport): void {
  expect(report.leftDrained).toEqual([WEB1])
  expect(report.servers.map(({ outcome }) => outcome)).toEqual(['failed', 'untouched', 'untouched'])
  expect(report.servers[0]).toMatchObject({
    refs: [WEB1],
    attempts: 1,
    error: { code: 'ACTION_FAILED' },
  })
  expect(report.failed).toMatchObject([{ ref: WEB1, held: true }])
  expect(report.untouched).toHaveLength(2)
}

describe('a resumed roll that does not begin names what its ticket has drained', () => {
  test('where another client has the lease', async () => {
    const rig = setUp(3)
    const ticket = await failed(rig)
    const lease = fakeLease({ clock: rig.clock })
    const { act, calls } = actor(rig.clock)
    lease.seize('another')
    const run = resumeRoll(rig.lb, ticket, { act, clock: rig.clock, lease })
    await rig.clock.advance(3_000)
    namesWhatIsLeft(run.report())
    for (let n = 0; n < 40; n += 1) {
      lease.seize('another')
      await rig.clock.advance(1_000)
    }
    const report = await rig.clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'stopped', error: { code: 'NOT_LEADER' } })
    namesWhatIsLeft(report)
    expect(calls).toEqual([])
  })

  test('where its store does not answer', async () => {
    const rig = setUp(3)
    const ticket = await failed(rig)
    const { act } = actor(rig.clock)
    const tickets = { ...jsonStore(), get: () => new Promise<never>(() => undefined) }
    const lease = fakeLease({ clock: rig.clock })
    const run = resumeRoll(rig.lb, ticket, { act, clock: rig.clock, lease, tickets })
    const report = await rig.clock.runUntil(run.done, 300_000)
    expect(report).toMatchObject({ outcome: 'stopped', error: { code: 'TICKET_INVALID' } })
    namesWhatIsLeft(report)
  })

  test.each<[string, (abort: AbortController) => Partial<ResumeRollOptions>]>([
    ['before the call', (abort) => (abort.abort(), {})],
    ['while it waits for its lease', () => ({})],
  ])('where it is aborted %s', async (_, given) => {
    const rig = setUp(3)
    const ticket = await failed(rig)
    const lease = fakeLease({ clock: rig.clock })
    lease.seize('another')
    const abort = new AbortController()
    const { act } = actor(rig.clock)
    const options = { act, clock: rig.clock, lease, signal: abort.signal, ...given(abort) }
    const run = resumeRoll(rig.lb, ticket, options)
    await rig.clock.advance(1_000)
    abort.abort()
    const report = await rig.clock.runUntil(run.done)
    expect(report.outcome).toBe('aborted')
    namesWhatIsLeft(report)
  })
})
