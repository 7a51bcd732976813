import { describe, expect, it } from 'vitest'
import { isDrainableError, type Lease } from 'drainable'
import { fakeClock, fakeLease } from 'drainable/testing'
import { Leadership, Term } from '../../../../src/fleet/lease/leadership.js'

const TTL = 15_000
const signal = new AbortController().signal

function contend(): ReturnType<typeof setUp> {
  return setUp()
}

function setUp() {
  const clock = fakeClock()
  const lease = fakeLease({ clock })
  const contender = (of: Lease = lease, its = clock): Leadership =>
    new Leadership({ lease: of, ttl: TTL, clock: its, subject: 'test()' })
  return { clock, lease, contender }
}

async function termOf(leadership: Leadership): Promise<Term> {
  const got = await leadership.acquire(signal)
  if (!(got instanceof Term)) throw new Error(`held by ${got.holder}`)
  return got
}

describe('a contender for a lease', () => {
  it('gets it and keeps it for as long as it renews', async () => {
    const { clock, lease, contender } = contend()
    const term = await termOf(contender())
    await clock.advance(10 * TTL)
    expect(term.permit()).toBeUndefined()
    expect(lease.held).toEqual(term.grant)
    await term.release()
    expect(lease.held).toBeNull()
    expect(clock.pending).toBe(0)
  })

  it('is told who has it', async () => {
    const { contender } = contend()
    const first = contender()
    const term = await termOf(first)
    const second = contender()
    expect(await second.acquire(signal)).toEqual({ holder: first.holder })
    expect(second.refusal(first.holder)).toMatchObject({ code: 'NOT_LEADER', retryable: true })
    expect(second.refusal(first.holder).message).toContain(first.holder)
    await term.release()
  })

  it('gets a higher number than the one before it', async () => {
    const { contender } = contend()
    const first = await termOf(contender())
    await first.release()
    const second = await termOf(contender())
    expect(second.grant.fence).toBeGreaterThan(first.grant.fence)
    await second.release()
  })

  it('has the same number if the answer to its first call was lost', async () => {
    const { lease, contender } = contend()
    const one = contender()
    lease.failNext('throw-after')
    await expect(one.acquire(signal)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    const fence = lease.held?.fence
    const term = await termOf(one)
    expect(term.grant.fence).toBe(fence)
    await term.release()
  })
})

describe('a term', () => {
  it.each(['throw', 'hang', 'throw-after'] as const)(
    'outlives one renewal that fails by %s',
    async (how) => {
      const { clock, lease, contender } = contend()
      const term = await termOf(contender())
      lease.failNext(how)
      await clock.advance(3 * TTL)
      expect(term.signal.aborted).toBe(false)
      expect(term.permit()).toBeUndefined()
      await term.release()
      expect(clock.pending).toBe(0)
    },
  )

  it('is over, and says so, before another process can have the lease', async () => {
    const { clock, lease, contender } = contend()
    const term = await termOf(contender())
    lease.failNext('throw', Infinity)
    let lostAt = 0
    term.signal.addEventListener('abort', () => (lostAt = clock.now()))
    await clock.advance(TTL - 1)
    expect(lease.held).toEqual(term.grant)
    expect(lostAt).toBe((TTL * 2) / 3)
    expect(isDrainableError(term.permit(), 'NOT_LEADER')).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('ends with the renewal that finds another holder', async () => {
    const { clock, lease, contender } = contend()
    const term = await termOf(contender())
    lease.seize('another client')
    await clock.advance(TTL / 5)
    expect(term.signal.aborted).toBe(true)
    expect((term.signal.reason as Error).message).toContain('went to another contender')
  })

  it('counts from when the renewal was sent, not from its answer', async () => {
    const clock = fakeClock()
    const lease = fakeLease({ clock, latency: 6_000 })
    const leadership = new Leadership({ lease, ttl: TTL, clock, subject: 'test()' })
    const term = await clock.runUntil(termOf(leadership))
    lease.failNext('throw', Infinity)
    expect(clock.now()).toBe(6_000)
    await clock.advance(3_999)
    expect(term.permit()).toBeUndefined()
    await clock.advance(1)
    expect(term.permit()).toMatchObject({ code: 'NOT_LEADER' })
  })

  it('is over for a process that was frozen before one of its timers fires', async () => {
    const clock = fakeClock()
    // Time goes on; what is set on it fires late, as after SIGSTOP and SIGCONT.
    let frozen = 0
    const its = { ...clockOf(clock), now: () => clock.now() + frozen, wall: () => clock.wall() }
    const lease = fakeLease({ clock })
    const leadership = new Leadership({ lease, ttl: TTL, clock: its, subject: 'test()' })
    const term = await termOf(leadership)
    frozen = 60_000
    expect(term.permit()).toMatchObject({ code: 'NOT_LEADER' })
    await Promise.resolve()
    expect(term.signal.aborted).toBe(true)
  })

  it('is over after a sleep that only the wall clock shows', async () => {
    const clock = fakeClock()
    let slept = 0
    const its = { ...clockOf(clock), now: () => clock.now(), wall: () => clock.wall() + slept }
    const lease = fakeLease({ clock })
    const leadership = new Leadership({ lease, ttl: TTL, clock: its, subject: 'test()' })
    const term = await termOf(leadership)
    slept = 60_000
    expect(term.permit()).toMatchObject({ code: 'NOT_LEADER' })
  })

  it('is not extended by a malformed answer', async () => {
    const { contender } = contend()
    for (const fence of [0, Number.NaN, 1.5, '7', undefined]) {
      const odd = { ...fakeLease({ clock: fakeClock() }), name: 'odd' } as unknown as Lease
      const lease: Lease = { ...odd, acquire: async () => ({ granted: true, fence }) as never }
      await expect(contender(lease).acquire(signal)).rejects.toMatchObject({
        code: 'MALFORMED_REPLY',
      })
    }
  })
})

function clockOf(clock: ReturnType<typeof fakeClock>) {
  return { setTimeout: (fn: () => void, ms: number) => clock.setTimeout(fn, ms) }
}
