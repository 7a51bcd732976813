import { describe, expect, test } from 'vitest'
import { drain, resumeDrain, startDrain, type Drain, type Reading } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, recorder, thrown, web1, web2 } from '../set-up.js'
import { json, recordChanges, rig, type Rig, showAs } from '../rig.js'

const NO_COUNTS_AFTER = { capabilities: { countsAfterRemove: false } }

async function begun(lb: FakeProvider, clock: FakeClock): Promise<Drain> {
  const run = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(500)
  expect(lb.state(web1)).toBe('drain')
  return run
}

/** A drain of a member that holds 3, which another client then takes out of its pool. */
function busy(options: Parameters<typeof rig>[0] = NO_COUNTS_AFTER): Rig {
  const both = rig(options)
  both.lb.occupy(web1, 3)
  return both
}

// Fault 12
describe('a member that is absent and listed without scopes', () => {
  test('ends as gone soon, and the work it held last is lost', async () => {
    const { clock, lb } = busy()
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(run.done, 5_000)
    expect(only(report)).toMatchObject({
      outcome: 'gone',
      phase: 'removed',
      verifiedIdle: false,
      error: { code: 'MEMBER_GONE' },
    })
    expect(only(report).lost).toMatchObject([{ scope: 'worker', active: 3 }])
  })

  test('names every process that held work as lost', async () => {
    const { clock, lb } = rig({ ...NO_COUNTS_AFTER, scopes: ['a', 'b', 'c'] })
    lb.occupy(web1, 3, 'a')
    lb.occupy(web1, 2, 'c')
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(run.done, 5_000)
    expect(only(report).lost).toMatchObject([
      { scope: 'a', active: 3 },
      { scope: 'c', active: 2 },
    ])
  })

  test('ends as gone with nothing lost if it held nothing', async () => {
    const { clock, lb } = rig(NO_COUNTS_AFTER)
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(run.done, 5_000)
    expect(only(report)).toMatchObject({ outcome: 'gone', lost: [], verifiedIdle: false })
  })

  test('is told once by a removed event and an end', async () => {
    const { clock, lb } = busy()
    const seen = recorder()
    await using run = startDrain(lb, web1, { clock, timeout: '10m', onEvent: seen.onEvent })
    await clock.advance(500)
    lb.setBehind(web1, 'gone')
    await clock.runUntil(run.done, 5_000)
    expect(seen.of('removed')).toHaveLength(1)
    expect(seen.of('end')).toMatchObject([{ outcome: 'gone' }])
  })

  test('makes drain() reject with MEMBER_GONE', async () => {
    const { clock, lb } = busy()
    const caught = thrown(drain(lb, web1, { clock, timeout: '10m' }))
    await clock.advance(500)
    lb.setBehind(web1, 'gone')
    expect(await clock.runUntil(caught, 5_000)).toMatchObject({ code: 'MEMBER_GONE' })
  })

  test('does not hold back the others of its group', async () => {
    const { clock, lb } = busy()
    await using run = startDrain(lb, [web1, web2], { clock, timeout: '10m' })
    await clock.advance(500)
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(run.done, 10_000)
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['gone', 'idle'])
  })

  test('ends a resume as gone', async () => {
    const { clock, lb } = busy()
    const first = await begun(lb, clock)
    const ticket = json(await first.ticket)
    await first.release()
    lb.setBehind(web1, 'gone')
    await using run = resumeDrain(lb, ticket, { clock })
    const report = await clock.runUntil(run.done, 5_000)
    expect(only(report)).toMatchObject({ outcome: 'gone', verifiedIdle: false })
    expect(only(report).lost).toMatchObject([{ scope: 'worker', active: 3 }])
  })

  test('is looked for a second time before it is called gone', async () => {
    const { clock, lb } = busy({ capabilities: { countsAfterRemove: false, freshness: 2_000 } })
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    const from = clock.now()
    expect((await clock.runUntil(run.done, 10_000)).outcome).toBe('gone')
    expect(clock.now() - from).toBeGreaterThanOrEqual(2_000)
  })
})

/** The next look only shows the member as absent. */
function absentOnce(lb: FakeProvider): void {
  const observe = lb.observe.bind(lb)
  let left = 1
  showAs(lb, (reading): Reading => {
    if (reading.ref.member !== 'web1' || left-- <= 0) return reading
    lb.observe = observe
    return { ref: reading.ref, present: false, scopes: [] }
  })
}

// Fault 12: absent members that are not gone, or not yet
describe('a member that is absent', () => {
  test('is not gone if the next look shows it again', async () => {
    const { clock, lb } = rig(NO_COUNTS_AFTER)
    const end = lb.occupy(web1, 3)
    await using run = await begun(lb, clock)
    absentOnce(lb)
    await clock.advance(5_000)
    expect(run.why()[0]).toMatchObject({ code: 'in-flight', count: 3 })
    end()
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
  })

  test('is not gone while a process still lists its work', async () => {
    const { clock, lb } = rig()
    const end = lb.occupy(web1, 3)
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    await clock.advance(30_000)
    expect(only(run.report())).toMatchObject({ phase: 'draining' })
    end()
    const report = await clock.runUntil(run.done, 10_000)
    expect(only(report)).toMatchObject({ outcome: 'gone', lost: [] })
  })

  test('is not gone if its load could be counted and no scope is listed', async () => {
    const { clock, lb } = busy({ capabilities: { countsAfterRemove: true } })
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    showAs(lb, (reading) => (reading.present ? reading : { ...reading, scopes: [] }))
    await clock.advance(30_000)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
    expect(run.why()).toContainEqual(
      expect.objectContaining({ code: 'unreadable', scope: 'worker' }),
    )
  })

  test("is removed, not gone, if until: 'removed' took it out", async () => {
    const { clock, lb } = rig(NO_COUNTS_AFTER)
    await using run = startDrain(lb, web1, { clock, until: 'removed' })
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'removed', verifiedIdle: true })
  })

  test('is not changed any more', async () => {
    const { clock, lb } = busy()
    await using run = await begun(lb, clock)
    lb.setBehind(web1, 'gone')
    await clock.advance(100)
    const sent = recordChanges(lb, clock)
    lb.setBehind(web1, 'ready') // another one of that name
    await clock.advance(5_000)
    await clock.runUntil(run.done)
    expect(sent).toEqual([])
    expect(lb.state(web1)).toBe('ready')
  })
})
