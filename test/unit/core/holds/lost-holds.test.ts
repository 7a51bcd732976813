import { afterEach, describe, expect, test } from 'vitest'
import { drain, restore, startDrain, type Ticket } from 'drainable'
import type { FakeFailure } from 'drainable/testing'
import { changesOf, only, recorder, web1 } from '../set-up.js'
import {
  applies,
  balancer,
  json,
  restoreWall,
  sendThrough,
  sent,
  steps,
  wallFollows,
} from '../balancer.js'

/** As on two products: the default timeout is no longer than what a call given up can still do. */
const slow = { capabilities: { lateBound: 30_000 } }

afterEach(restoreWall)

function gaps(moments: readonly { readonly at: number }[]): number[] {
  return moments.slice(1).map(({ at }, i) => at - moments[i]!.at)
}

// Fault 14: a hold whose answer was lost is read back and sent again, not waited for.
describe('a hold whose answer was lost', () => {
  test('is sent again at once, then after 250 ms, doubled to 5 s', async () => {
    const { clock, lb } = balancer(slow)
    lb.failNext('throw', { verb: 'apply', times: 9 })
    const run = startDrain(lb, web1, { clock, timeout: '10m', seal: false })
    await clock.runUntil(run.done)
    await run.release()
    const waits = [0, 250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]
    const found = gaps(sent(lb, 'hold'))
    expect(found).toHaveLength(waits.length)
    for (const [i, wait] of waits.entries()) {
      expect(found[i]).toBeGreaterThanOrEqual(wait)
      expect(found[i]).toBeLessThanOrEqual(wait + 100) // a look each 100 ms
    }
  })

  test.each<FakeFailure>(['throw', 'throw-after', 'unknown'])(
    'does not cost a lateBound (%s)',
    async (how) => {
      const { clock, lb } = balancer(slow)
      lb.failNext(how, { verb: 'apply' })
      const report = await clock.runUntil(drain(lb, web1, { clock }))
      expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(report.elapsed).toBeLessThan(2_000)
    },
  )

  test('adds an entry to the ledger each time', async () => {
    const { clock, lb } = balancer(slow)
    lb.failNext('throw', { verb: 'apply' })
    const kept: string[][] = []
    const onTicket = (ticket: Ticket): void => {
      kept.push([...changesOf(ticket.members[0])])
    }
    const report = await clock.runUntil(drain(lb, web1, { clock, seal: false, onTicket }))
    expect(report.outcome).toBe('idle')
    expect(kept.find((changes) => changes.length === 2)).toEqual([
      'drain:intended',
      'drain:intended',
    ])
  })

  test('is ours if the next try is answered with unchanged', async () => {
    const { clock, lb } = balancer(slow)
    lb.occupy(web1)
    let first = true
    sendThrough(lb, async (changes, ctx, apply) => {
      if (!first) {
        lb.setBehind(web1, 'drain') // the frozen balancer carries the first one out only now
        return apply(changes, ctx)
      }
      first = false
      lb.failNext('throw', { verb: 'apply' })
      return apply(changes, ctx)
    })
    const run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(60_000)
    const ticket = json(await run.ticket)
    await run.release()
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
  })

  test('is sent again by the next steps', async () => {
    const { clock, lb } = balancer(slow)
    wallFollows(clock)
    lb.failNext('throw', { verb: 'apply' })
    const startedAt = clock.now()
    const done = await steps(lb, clock, { target: web1 })
    expect(done.at(-1)?.outcome).toBe('idle')
    expect(clock.now() - startedAt).toBeLessThan(3_000)
  })
})

// Fault 14: the same for every later hold of a drain.
describe('the lost answer', () => {
  test('to a seal does not cost a lateBound', async () => {
    const { clock, lb } = balancer(slow)
    const run = startDrain(lb, web1, { clock })
    await clock.advance(500)
    lb.failNext('throw', { verb: 'apply' })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'idle', sealed: true })
    expect(report.elapsed).toBeLessThan(2_500)
  })

  test('to a put-back after a reload does not cost a lateBound', async () => {
    const { clock, lb } = balancer(slow)
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.failNext('throw', { verb: 'apply' })
    lb.reload()
    await clock.advance(1_500)
    const found = lb.state(web1)
    await run.release()
    expect(sent(lb, 'hold').length).toBeGreaterThanOrEqual(4) // first, seal, lost, again
    expect(found).toBe('maint')
  })

  test('to an escalation does not cost a lateBound', async () => {
    const { clock, lb } = balancer(slow)
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '10m', escalateAfter: '5s' })
    await clock.advance(2_000)
    lb.failNext('throw', { verb: 'apply' })
    await clock.advance(5_000)
    const found = lb.state(web1)
    await run.release()
    expect(found).toBe('maint')
  })
})

// Fault 14: another client's change since then is an overrule, not a loss.
describe('a lost answer beside a change of another client', () => {
  test('ends as overruled at once if the member opened during the seal', async () => {
    const { clock, lb } = balancer(slow)
    const seen = recorder()
    let opened = 0
    sendThrough(lb, async (changes, ctx, apply) => {
      const seals = changes.some((change) => change.kind === 'hold' && change.to === 'maint')
      if (seals && opened === 0) {
        opened = clock.now()
        lb.setBehind(web1, 'ready')
        lb.failNext('throw', { verb: 'apply' })
      }
      return apply(changes, ctx)
    })
    const run = startDrain(lb, web1, { clock, timeout: '2m', onEvent: seen.onEvent })
    const report = await clock.runUntil(run.done)
    const endedAt = clock.now()
    await run.release()
    expect(only(report).outcome).toBe('overruled')
    expect(seen.of('overruled')).toEqual([expect.objectContaining({ found: 'ready' })])
    expect(endedAt - opened).toBeLessThan(500)
    expect(lb.state(web1)).toBe('ready')
    expect(sent(lb, 'hold')).toHaveLength(2)
  })

  test('ends as overruled at once if the member opened during an escalation', async () => {
    const { clock, lb } = balancer(slow)
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '10m', escalateAfter: '5s' })
    await clock.advance(4_000)
    lb.failNext('throw', { verb: 'apply' })
    sendThrough(lb, async (changes, ctx, apply) => {
      lb.setBehind(web1, 'ready')
      return apply(changes, ctx)
    })
    await clock.advance(2_000)
    const outcome = only(run.report()).outcome
    await run.release()
    expect(outcome).toBe('overruled')
    expect(lb.state(web1)).toBe('ready')
  })

  // What must stay true.
  test('is not an overrule after a reload, which forgot the hold', async () => {
    const { clock, lb } = balancer(slow)
    const seen = recorder()
    let reloaded = false
    sendThrough(lb, async (changes, ctx, apply) => {
      const seals = changes.some((change) => change.kind === 'hold' && change.to === 'maint')
      if (seals && !reloaded) {
        reloaded = true
        lb.reload()
        lb.failNext('throw', { verb: 'apply' })
      }
      return apply(changes, ctx)
    })
    const run = startDrain(lb, web1, { clock, timeout: '2m', onEvent: seen.onEvent })
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'idle', sealed: true })
    expect(seen.of('overruled')).toEqual([])
    expect(report.elapsed).toBeLessThan(5_000)
  })

  test('is not an overrule if a put-back after a reload was lost', async () => {
    const { clock, lb } = balancer(slow)
    lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10m', onEvent: seen.onEvent })
    await clock.advance(2_000)
    lb.reload()
    lb.failNext('throw', { verb: 'apply', times: 2 })
    await clock.advance(3_000)
    const found = lb.state(web1)
    await run.release()
    expect(seen.of('overruled')).toEqual([])
    expect(found).toBe('drain')
  })
})

// What must stay true while fault 14 is mended.
describe('a repeat that could do harm', () => {
  test('is not sent for a lost removal before lateBound has passed', async () => {
    const { clock, lb } = balancer({ capabilities: { lateBound: 5_000 } })
    let first = true
    sendThrough(lb, async (changes, ctx, apply) => {
      if (first && changes.some(({ kind }) => kind === 'remove')) {
        first = false
        lb.failNext('throw', { verb: 'apply' })
      }
      return apply(changes, ctx)
    })
    const run = startDrain(lb, web1, { clock, timeout: '1m', until: 'removed' })
    expect((await clock.runUntil(run.done)).outcome).toBe('removed')
    expect(gaps(sent(lb, 'remove'))[0]).toBeGreaterThanOrEqual(5_000)
  })

  test('is not sent for a hold that was carried out without an answer', async () => {
    const { clock, lb } = balancer(slow)
    lb.failNext('throw-after', { verb: 'apply' })
    await clock.runUntil(drain(lb, web1, { clock, seal: false }))
    expect(applies(lb)).toHaveLength(1)
  })

  test('is sent for a hold only after a look asked for since', async () => {
    const { clock, lb } = balancer({ ...slow, latency: 10 })
    lb.failNext('throw', { verb: 'apply', times: 3 })
    await clock.runUntil(drain(lb, web1, { clock, seal: false, timeout: '2m' }))
    const holds = applies(lb)
    for (const [i, hold] of holds.slice(1).entries()) {
      const between = lb.requests.filter(
        ({ verb, at }) => verb === 'observe' && at >= holds[i]!.at + 10 && at < hold.at,
      )
      expect(between.length).toBeGreaterThan(0)
    }
  })
})
