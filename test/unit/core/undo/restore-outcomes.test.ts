import { afterEach, describe, expect, test } from 'vitest'
import { DrainableError, restore, startDrain, type Ticket } from 'drainable'
import type { Change, ChangeResult } from 'drainable/provider'
import { type FakeProvider } from 'drainable/testing'
import { only, recorder, web1, web2 } from '../set-up.js'
import {
  balancer,
  json,
  restoreWall,
  sendThrough,
  sent,
  withPresent,
  seeThrough,
} from '../balancer.js'

afterEach(restoreWall)

/** Refuses the changes that match, as values; the others go through. */
function refuse(
  lb: FakeProvider,
  matches: (change: Change) => boolean,
  error: DrainableError,
  times = Infinity,
): void {
  let left = times
  sendThrough(lb, async (changes, ctx, apply) => {
    const results: ChangeResult[] = []
    for (const change of changes) {
      if (matches(change) && left > 0) {
        left -= 1
        results.push({ ref: change.ref, status: 'rejected', error })
        await apply([], ctx)
      } else results.push((await apply([change], ctx))[0]!)
    }
    return results
  })
}

const denied = new DrainableError('FORBIDDEN', 'the device says "user ops may not do that"')
const isRestore = ({ kind }: Change): boolean => kind === 'restore'

/** A ticket of a drain that is held, and no process holds it any more. */
async function left(options: Parameters<typeof balancer>[0] = {}, policy: object = {}) {
  const { clock, lb } = balancer(options)
  const run = startDrain(lb, web1, { clock, timeout: '1m', ...policy })
  await clock.runUntil(run.done)
  const ticket: Ticket = json(await run.ticket)
  await run.release()
  return { clock, lb, ticket }
}

// Fault 15: an undo says what became of it.
describe('restore(ticket) ends as', () => {
  test('restored if it opened what was ours', async () => {
    const { clock, lb, ticket } = await left()
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(report.outcome).toBe('restored')
    expect(only(report)).toMatchObject({ outcome: 'restored', phase: 'active' })
    expect(lb.state(web1)).toBe('ready')
  })

  test('restored if nothing of ours is left', async () => {
    const { clock, lb, ticket } = await left()
    lb.setBehind(web1, 'ready')
    const before = lb.requests.length
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(only(report).outcome).toBe('restored')
    expect(only(report).error).toBeUndefined()
    expect(lb.requests.slice(before).filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('overruled if another client changed it since', async () => {
    const { clock, lb, ticket } = await left({}, { seal: false })
    lb.setBehind(web1, 'maint')
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(only(report).outcome).toBe('overruled')
    expect(only(report).error).toBeInstanceOf(Error)
    expect(lb.state(web1)).toBe('maint')
  })

  test('gone if the member does not exist any more', async () => {
    const { clock, lb, ticket } = await left()
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'gone', error: { code: 'MEMBER_GONE' } })
  })

  test('refused if the balancer refused', async () => {
    const { clock, lb, ticket } = await left()
    refuse(lb, isRestore, denied)
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'refused', error: { code: 'FORBIDDEN' } })
    expect(only(report).error?.message).toBe(denied.message)
  })

  test('unreachable if the balancer can not be read', async () => {
    const { clock, lb, ticket } = await left()
    lb.disconnect()
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(report.outcome).toBe('unreachable')
    expect(only(report)).toMatchObject({
      outcome: 'unreachable',
      phase: 'draining',
      error: { code: 'UNREACHABLE' },
    })
  })

  test('the worst of its members', async () => {
    const { clock, lb } = balancer({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
    const run = startDrain(lb, [web1, web2], { clock })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket)
    await run.release()
    refuse(lb, (change) => isRestore(change) && change.ref.member === 'web2', denied)
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['restored', 'refused'])
    expect(report.outcome).toBe('refused')
    expect(lb.state(web1)).toBe('ready')
  })
})

// Fault 15: the same for the handle, and what `done` says of it.
describe('restore() of a handle', () => {
  test('ends as restored', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const report = await clock.runUntil(run.restore())
    expect(report.outcome).toBe('restored')
    expect(only(report)).toMatchObject({ outcome: 'restored', phase: 'active' })
  })

  test('ends as refused if the balancer refused', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    refuse(lb, isRestore, denied)
    const report = await clock.runUntil(run.restore())
    expect(only(report)).toMatchObject({ outcome: 'refused', error: { code: 'FORBIDDEN' } })
  })

  test('ends as unreachable if the balancer can not be read', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.disconnect()
    const report = await clock.runUntil(run.restore())
    await run.release()
    expect(only(report)).toMatchObject({
      outcome: 'unreachable',
      phase: 'draining',
      error: { code: 'UNREACHABLE' },
    })
  })

  test('ends as overruled if another client changed it since', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock, seal: false })
    await clock.runUntil(run.done)
    await run.release()
    lb.setBehind(web1, 'maint')
    const report = await clock.runUntil(run.restore())
    expect(only(report).outcome).toBe('overruled')
    expect(lb.state(web1)).toBe('maint')
  })

  test('ends as gone if the member does not exist any more', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    await run.release()
    lb.setBehind(web1, 'gone')
    const report = await clock.runUntil(run.restore())
    expect(only(report)).toMatchObject({ outcome: 'gone', error: { code: 'MEMBER_GONE' } })
  })

  test('in mid-drain comes before done, which says aborted', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    const order: string[] = []
    const done = run.done.then((report) => order.push(`done ${report.outcome}`))
    const undone = run.restore().then((report) => order.push(`restore ${report.outcome}`))
    await clock.runUntil(Promise.all([done, undone]))
    expect(order).toEqual(['restore restored', 'done aborted'])
    expect(only(await run.done).outcome).toBe('aborted')
  })

  test('after done keeps what done has said', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    const said = json(await clock.runUntil(run.done))
    const undone = await clock.runUntil(run.restore())
    expect(undone.outcome).toBe('restored')
    expect(json(await run.done)).toEqual(said)
  })
})

test('a look that shows our member ready after a restore blames no client', async () => {
  const { clock, lb } = balancer()
  const seen = recorder()
  const run = startDrain(lb, web1, { clock, onEvent: seen.onEvent })
  await clock.runUntil(run.done)
  seeThrough(lb, (snapshot) =>
    withPresent(snapshot, (reading) => ({ ...reading, hints: ['checked'] })),
  )
  const report = await clock.runUntil(run.restore())
  await clock.advance(2_000)
  expect(only(report).outcome).toBe('restored')
  expect(seen.of('overruled')).toEqual([])
  expect(sent(lb, 'hold')).toHaveLength(2)
})
