import { afterEach, describe, expect, test } from 'vitest'
import {
  DrainableError,
  drain,
  ready,
  restore,
  startDrain,
  type DrainReport,
  type MemberRef,
  type Ticket,
  type TicketStore,
} from 'drainable'
import type { CallContext, Change, ChangeResult } from 'drainable/provider'
import type { FakeProvider } from 'drainable/testing'
import { changesOf, only, recorder, thrown, web1, web2 } from '../set-up.js'
import { stepped } from '../stepped.js'
import {
  applies,
  balancer,
  json,
  restoreWall,
  sendThrough,
  sent,
  wallFollows,
} from '../balancer.js'

const NEVER = new Promise<never>(() => undefined)
const four = { pools: { web: ['web1', 'web2', 'web3', 'web4'] } }

afterEach(restoreWall)

function lost(): DrainableError {
  return new DrainableError('CONNECTION_LOST', 'the connection broke in the middle')
}

function refusal(retryable = false): DrainableError {
  return new DrainableError('REJECTED', 'one copy said no', { retryable })
}

/** The states of a member's changes, as the ticket has them. */
function states(ticket: Ticket | undefined, { member }: MemberRef): readonly string[] {
  const found = ticket?.members.find(({ ref }) => ref.member === member)
  return changesOf(found)
}

function member(report: DrainReport, ref: MemberRef): DrainReport['members'][number] {
  return report.members.find((found) => found.ref.member === ref.member)!
}

/**
 * An adapter that makes one change after the other and hands each result up as it ends; `then` says
 * how the first call that holds several goes on after web1.
 */
function oneByOne(
  lb: FakeProvider,
  then: (ctx: CallContext) => Promise<never>,
  first: (change: Change) => ChangeResult | undefined = () => undefined,
): void {
  let broken = false
  sendThrough(lb, async (changes, ctx, apply) => {
    const breaks = !broken && changes.length > 1
    const results: ChangeResult[] = []
    for (const [i, change] of changes.entries()) {
      const result = (breaks ? first(change) : undefined) ?? (await apply([change], ctx))[0]!
      ctx.result?.(i, result)
      results.push(result)
      if (!breaks) continue
      broken = true
      return then(ctx)
    }
    return results
  })
}

// Fault 13: one result after another, and what half happened.
describe('results handed up one by one', () => {
  test('are in the ticket while their call is still under way', async () => {
    const { clock, lb } = balancer(four)
    oneByOne(lb, () => NEVER)
    const kept: Ticket[] = []
    const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
    const run = startDrain(lb, [web1, web2], { clock, timeout: '1m', onTicket })
    await clock.advance(500)
    await clock.runUntil(run.release())
    expect(states(kept.at(-1), web1)).toEqual(['drain:applied'])
    expect(states(kept.at(-1), web2)).toEqual(['drain:intended'])
  })

  test('let a held member drain while the call hangs', async () => {
    const { clock, lb } = balancer(four)
    oneByOne(lb, () => NEVER)
    const run = startDrain(lb, [web1, web2], { clock, timeout: '1m' })
    await clock.advance(2_000)
    const report = run.report()
    await clock.runUntil(run.release())
    expect(['draining', 'idle']).toContain(member(report, web1).phase)
    expect(member(report, web2).phase).toBe('active')
  })

  test.each([
    ['a throw', () => Promise.reject(lost())],
    ['a value too few', () => Promise.resolve([] as never)],
  ])('leave only the others unknown after %s', async (_, then) => {
    const { clock, lb } = balancer({ ...four, capabilities: { lateBound: 30_000 } })
    oneByOne(lb, then, (change) => ({ ref: change.ref, status: 'rejected', error: refusal() }))
    const run = startDrain(lb, [web1, web2], { clock, timeout: '1m' })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(member(report, web1)).toMatchObject({ outcome: 'refused', error: { code: 'REJECTED' } })
    expect(member(report, web2).outcome).toBe('idle')
    expect(sent(lb, 'hold').map(({ change }) => change.ref)).not.toContainEqual(web1)
  })

  test('leave only the others unknown after a time-out', async () => {
    const { clock, lb } = balancer({ ...four, capabilities: { lateBound: 30_000 } })
    oneByOne(
      lb,
      () => NEVER,
      (change) => ({ ref: change.ref, status: 'rejected', error: refusal() }),
    )
    const run = startDrain(lb, [web1, web2], { clock, timeout: '5m' })
    await clock.advance(35_000) // the call was given up after 30 s
    const report = run.report()
    await run.release()
    expect(member(report, web1)).toMatchObject({ outcome: 'refused', error: { code: 'REJECTED' } })
  })

  test('are undone by the ticket after an abort', async () => {
    const { clock, lb } = balancer(four)
    oneByOne(lb, () => NEVER)
    const stop = new AbortController()
    const kept: Ticket[] = []
    const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
    const caught = thrown(
      drain(lb, [web1, web2], { clock, timeout: '1m', signal: stop.signal, onTicket }),
    )
    await clock.advance(500)
    stop.abort('enough')
    expect(await clock.runUntil(caught)).toBe('enough')
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
    const report = await clock.runUntil(restore(lb, kept.at(-1)!, { clock }))
    expect(lb.state(web1)).toBe('ready')
    expect(member(report, web1).outcome).toBe('restored')
  })

  test('end one of two drains in a call when it is refused', async () => {
    const { clock, lb } = balancer(four)
    sendThrough(lb, async (changes, ctx, apply) => {
      const results: ChangeResult[] = []
      for (const [i, change] of changes.entries()) {
        const result: ChangeResult =
          change.ref.member === 'web2' && change.kind === 'hold'
            ? { ref: change.ref, status: 'rejected', error: refusal() }
            : (await apply([change], ctx))[0]!
        ctx.result?.(i, result)
        results.push(result)
      }
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 500))
      return results
    })
    const one = startDrain(lb, web1, { clock, timeout: '1m' })
    const two = startDrain(lb, web2, { clock, timeout: '1m' })
    await clock.advance(300) // handed up, while both calls are still under way
    const early = only(two.report()).outcome
    expect((await clock.runUntil(two.done)).outcome).toBe('refused')
    expect((await clock.runUntil(one.done)).outcome).toBe('idle')
    await clock.runUntil(one.release())
    await clock.runUntil(two.release())
    expect(early).toBe('refused')
  })

  test('are taken by a step before the call throws', async () => {
    const { clock, lb } = balancer(four)
    wallFollows(clock)
    oneByOne(lb, () => Promise.reject(lost()))
    const first = await stepped(lb, { target: [web1, web2] }, { clock })
    await clock.advance(1)
    const second = await stepped(lb, json(first.ticket), { clock })
    const drains = sent(lb, 'hold').filter(({ change }) => change.ref.member === 'web1')
    expect(drains).toHaveLength(1)
    // The step goes on for as long as one proof can need: web2 is held by then, and web1 to be sealed next.
    expect(states(second.ticket, web1)).toEqual(['drain:applied', 'maint:intended'])
    expect(states(second.ticket, web2)).toEqual(['drain:applied'])
  })

  // What must stay true.
  test('are not waited for by an undo when the call throws later', async () => {
    const { clock, lb } = balancer({ ...four, capabilities: { lateBound: 10_000 } })
    lb.setBehind(web1, 'drain')
    lb.setBehind(web2, 'drain')
    let broken = false
    sendThrough(lb, async (changes, ctx, apply) => {
      if (broken) return apply(changes, ctx)
      broken = true
      const results = await apply(changes, ctx)
      for (const [i, result] of results.entries()) ctx.result?.(i, result)
      throw lost()
    })
    const startedAt = clock.now()
    await clock.runUntil(ready(lb, [web1, web2], { clock }))
    expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'ready'])
    expect(applies(lb)).toHaveLength(1)
    expect(clock.now() - startedAt).toBeLessThan(2_000)
  })

  test('are optional: the array of an adapter without them is believed', async () => {
    const { clock, lb } = balancer(four)
    const report = await clock.runUntil(drain(lb, [web1, web2], { clock }))
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
  })

  test('count once if the array has them too', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1, 3)
    sendThrough(lb, async (changes, ctx, apply) => {
      const results = await apply(changes, ctx)
      results.forEach((result, i) => ctx.result?.(i, result))
      return results
    })
    const seen = recorder()
    const report = await clock.runUntil(
      drain(lb, web1, {
        clock,
        timeout: '2s',
        onTimeout: 'terminate',
        onEvent: seen.onEvent,
      }),
    )
    expect(only(report).terminated).toBe(3)
    expect(seen.of('terminated').map(({ count }) => count)).toEqual([3])
  })

  test.each([-1, 7, 0.5, NaN])('are ignored for change %s of one', async (index) => {
    const { clock, lb } = balancer()
    sendThrough(lb, async (changes, ctx, apply) => {
      const error = refusal()
      ctx.result?.(index, { ref: changes[0]!.ref, status: 'rejected', error })
      return apply(changes, ctx)
    })
    expect((await clock.runUntil(drain(lb, web1, { clock }))).outcome).toBe('idle')
  })

  test.each(['handed up', 'in the array'])(
    'about another member, %s, leave the change unknown',
    async (way) => {
      const { clock, lb } = balancer({ ...four, capabilities: { lateBound: 2_000 } })
      let swapped = false
      sendThrough(lb, async (changes, ctx, apply) => {
        if (swapped || changes.length < 2) return apply(changes, ctx)
        swapped = true
        // web1 is held, web2 is refused, and each answer stands at the other's place.
        const held = await apply([changes[0]!], ctx)
        const refused: ChangeResult = { ref: web2, status: 'rejected', error: refusal() }
        const results = [refused, ...held]
        if (way === 'handed up') results.forEach((result, i) => ctx.result?.(i, result))
        return results
      })
      const report = await clock.runUntil(drain(lb, [web1, web2], { clock, timeout: '1m' }))
      expect(report.members.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
      expect([lb.state(web1), lb.state(web2)]).not.toContain('ready')
    },
  )

  test('are ignored after their call was given up', async () => {
    const { clock, lb } = balancer()
    let late = (): void => undefined
    let first = true
    sendThrough(lb, async (changes, ctx, apply) => {
      if (!first) return apply(changes, ctx)
      first = false
      late = () => ctx.result?.(0, { ref: web1, status: 'rejected', error: refusal() })
      throw lost()
    })
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    late()
    await clock.advance(1_000)
    const report = only(run.report())
    await run.release()
    expect(report.phase).toBe('draining')
    expect(report.error).toBeUndefined()
  })
})

/** An adapter that carries a hold out and calls it refused: one of the copies behind it said no. */
function refusesWhatItDid(lb: FakeProvider, retryable: boolean, times = Infinity): void {
  let left = times
  sendThrough(lb, async (changes, ctx, apply) => {
    const results = await apply(changes, ctx)
    return results.map((result, i): ChangeResult => {
      if (changes[i]!.kind !== 'hold' || left <= 0) return result
      left -= 1
      return { ref: result.ref, status: 'rejected', error: refusal(retryable) }
    })
  })
}

// Fault 13: what half happened is put back or is in the ticket.
describe('a hold called refused that was carried out', () => {
  test('is put back, or stands in the ticket', async () => {
    const { clock, lb } = balancer()
    refusesWhatItDid(lb, false)
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    await clock.advance(5_000)
    const left = { state: lb.state(web1), changes: states(await run.ticket, web1).length > 0 }
    await run.release()
    expect([
      { state: 'ready', changes: false },
      { state: 'ready', changes: true },
      { state: 'drain', changes: true },
      { state: 'maint', changes: true },
    ]).toContainEqual(left)
  })

  test('keeps its ticket in the store until it is undone', async () => {
    const { clock, lb } = balancer()
    refusesWhatItDid(lb, false)
    const map = new Map<string, unknown>()
    const tickets: TicketStore = {
      get: async (key) => map.get(key),
      set: async (key, value) => map.set(key, json(value)),
      delete: async (key) => map.delete(key),
    }
    const run = startDrain(lb, web1, { clock, tickets, id: 'half' })
    await clock.runUntil(run.done)
    await clock.advance(5_000)
    await run.release()
    expect(lb.state(web1) === 'ready' || map.has('half')).toBe(true)
  })

  test('is opened by restore() of the handle', async () => {
    const { clock, lb } = balancer()
    refusesWhatItDid(lb, false)
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const report = await clock.runUntil(run.restore())
    await run.release()
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
  })

  test('is ours if the next try is answered with unchanged', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    refusesWhatItDid(lb, true, 1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(5_000)
    const report = await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
  })

  // What must stay true.
  test('leaves nothing behind if it really did not happen', async () => {
    const { clock, lb } = balancer()
    lb.failNext('reject', { verb: 'apply' })
    const map = new Map<string, unknown>()
    const tickets: TicketStore = {
      get: async (key) => map.get(key),
      set: async (key, value) => map.set(key, json(value)),
      delete: async (key) => map.delete(key),
    }
    const run = startDrain(lb, web1, { clock, tickets, id: 'none' })
    expect((await clock.runUntil(run.done)).outcome).toBe('refused')
    await run.release()
    await clock.advance(5_000)
    expect(lb.state(web1)).toBe('ready')
    expect(map.has('none')).toBe(false)
  })

  test('is not undone if the state was there before ours', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    const run = startDrain(lb, web1, { clock, seal: false })
    await clock.runUntil(run.done)
    await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('drain')
  })
})
