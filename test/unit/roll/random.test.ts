import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { combineProviders, resumeRoll, startRoll, type Roll, type Ticket } from 'drainable'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { jsonStore } from '../combined/set-up.js'

/**
 * Two balancers with the same servers and a truth of their own. A server may be acted on only while it holds
 * no work on either, never fewer than `keepReady` serve on either by our doing, and a roll that is resumed
 * after each crash ends with every server open that was open before.
 */
const SIZE = 5
const names = Array.from({ length: SIZE }, (_, n) => `web${n + 1}`)

const step = fc.oneof(
  fc.record({
    kind: fc.constantFrom('occupy', 'free', 'reload', 'away', 'crash', 'drained', 'arrive'),
    server: fc.nat(SIZE - 1),
    side: fc.nat(1),
    after: fc.integer({ min: 1, max: 4_000 }),
  }),
)

const story = fc.record({
  steps: fc.array(step, { maxLength: 10 }),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  keepReady: fc.integer({ min: 1, max: 4 }),
  canary: fc.nat(2),
  onTimeout: fc.constantFrom('postpone', 'fail'),
  onFailure: fc.constantFrom('stop', 'continue'),
  failing: fc.array(fc.nat(SIZE - 1), { maxLength: 2 }),
  work: fc.integer({ min: 0, max: 3_000 }),
})

type Story = typeof story extends fc.Arbitrary<infer T> ? T : never

async function play(told: Story): Promise<void> {
  const clock = fakeClock(1_000)
  const pools = { web: names }
  const sides = [
    fakeProvider({ pools, clock, instance: 'a', capabilities: { blind: 200 } }),
    fakeProvider({ pools, clock, instance: 'b' }),
  ] as const
  const tickets = jsonStore()
  const ref = (n: number): { pool: string; member: string } => ({ pool: 'web', member: names[n]! })
  const isOut = (lb: FakeProvider, n: number): boolean => lb.state(ref(n)) !== 'ready'
  const theirs = new Set<string>()
  const open: (() => void)[] = []
  const faults: string[] = []
  const calls = new Map<string, number>()
  let process = { alive: true }

  const act = (mine: { alive: boolean }) => {
    return async (server: {
      refs: readonly { member: string }[]
      attempt: number
      signal: AbortSignal
    }): Promise<void> => {
      const isDead = (): boolean => !mine.alive
      if (isDead()) return new Promise(() => undefined)
      const [{ member } = { member: '' }] = server.refs
      const n = names.indexOf(member)
      if (server.attempt <= (calls.get(member) ?? 0)) faults.push(`${member}: attempt again`)
      calls.set(member, server.attempt)
      for (const [side, lb] of sides.entries()) {
        if (lb.load(ref(n)) > 0) faults.push(`${member} is acted on with work on ${side}`)
        if (!isOut(lb, n)) faults.push(`${member} is acted on while it is open on ${side}`)
      }
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, told.work))
      if (isDead()) return new Promise(() => undefined)
      if (server.attempt === 1 && told.failing.includes(n)) throw new Error('exit 1')
    }
  }
  const below = (): void => {
    for (const [side, lb] of sides.entries()) {
      const serving = names.filter((_, n) => !isOut(lb, n)).length
      const others = names.filter((_, n) => theirs.has(`${side} ${n}`)).length
      if (serving < Math.min(told.keepReady, SIZE - others))
        faults.push(`${serving} serve on ${side}, keepReady ${told.keepReady}`)
    }
  }
  const all = (): ReturnType<typeof combineProviders> =>
    combineProviders({ a: sides[0], b: sides[1] }, { onUnreachable: 'wait' })
  const target = [
    { pool: 'web', balancer: 'a' },
    { pool: 'web', balancer: 'b' },
  ]
  const begin = (): Roll =>
    startRoll(all(), target, {
      act: act(process),
      clock,
      tickets,
      id: 'job',
      timeout: '10s',
      waitHealthy: '2m',
      maxUnavailable: told.maxUnavailable,
      keepReady: told.keepReady,
      canary: told.canary,
      onTimeout: told.onTimeout,
      onFailure: told.onFailure,
    })
  const resume = async (): Promise<Roll | undefined> => {
    const ticket = (await tickets.get('job')) as Ticket | undefined
    if (ticket === undefined) return undefined
    return resumeRoll(all(), ticket, { act: act(process), clock, tickets })
  }

  let run: Roll | undefined = begin()
  for (const { kind, server, side, after } of told.steps) {
    await clock.advance(after)
    below()
    const lb = sides[side]!
    const serves = !isOut(lb, server)
    if (kind === 'occupy' && serves) open.push(lb.occupy(ref(server)))
    if (kind === 'arrive' && serves) lb.arrive(ref(server))
    if (kind === 'free') open.shift()?.()
    if (kind === 'reload') lb.reload()
    if (kind === 'away') {
      lb.disconnect()
      clock.setTimeout(() => lb.connect(), 3_000)
    }
    const isWhole = !theirs.size && sides.every((one) => names.every((_, n) => !isOut(one, n)))
    if (kind === 'drained' && isWhole && told.keepReady < SIZE - 1) {
      lb.setBehind(ref(server), 'maint')
      theirs.add(`${side} ${server}`)
    }
    if (kind === 'crash') {
      process.alive = false
      const closed = run?.close()
      await clock.advance(10)
      void closed
      process = { alive: true }
      run = await resume()
    }
  }
  for (const end of open) end()
  for (let tries = 0; tries < 4 && run !== undefined; tries += 1) {
    const report = await clock.runUntil(run.done)
    below()
    if (report.outcome === 'done') break
    run = await resume()
  }
  expect(faults).toEqual([])
  for (const [side, lb] of sides.entries()) {
    for (const [n, name] of names.entries()) {
      const wished = theirs.has(`${side} ${n}`) ? 'maint' : 'ready'
      if (run !== undefined && (await run.done).outcome === 'done')
        expect(`${side} ${name} ${lb.state(ref(n))}`).toBe(`${side} ${name} ${wished}`)
    }
  }
}

describe('random rolls over two balancers', () => {
  test('act on nothing that holds work, and keep the floor', async () => {
    await fc.assert(fc.asyncProperty(story, play), { numRuns: 40 })
  })
})
