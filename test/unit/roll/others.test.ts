import { describe, expect, test } from 'vitest'
import { startDrain, startRoll, type AdminState, type RollEvent } from 'drainable'
import { actor, setUp, web } from './set-up.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** What an operator does to web1, one step a second. */
const CLOSINGS: readonly {
  readonly when: 'drains' | 'acts'
  readonly steps: readonly AdminState[]
  readonly seal?: boolean
}[] = [
  { when: 'drains', steps: ['maint'] },
  { when: 'drains', steps: ['maint'], seal: false },
  { when: 'acts', steps: ['drain'] },
  { when: 'acts', steps: ['maint'], seal: false },
  { when: 'acts', steps: ['ready', 'drain'] },
  { when: 'acts', steps: ['ready', 'maint'] },
  { when: 'acts', steps: ['ready', 'drain'], seal: false },
  { when: 'acts', steps: ['ready', 'maint'], seal: false },
]

/** A roll over three servers in which an operator closes the first one. */
async function closed({ when, steps, seal }: (typeof CLOSINGS)[number]) {
  const { clock, lb } = setUp(3)
  const events: RollEvent[] = []
  const told: unknown[] = []
  const later = (ms: number): Promise<void> =>
    new Promise((resolve) => void clock.setTimeout(resolve, ms))
  const close = async (): Promise<void> => {
    for (const state of steps) {
      lb.setBehind(WEB1, state)
      await later(1_000)
    }
  }
  const end = when === 'drains' ? lb.occupy(WEB1) : undefined
  const { act, calls } = actor(clock, async ({ ref, signal }) => {
    if (ref.member !== 'web1') return
    signal.addEventListener('abort', () => told.push(signal.reason))
    if (when === 'acts') await close()
  })
  const options = seal === undefined ? {} : { seal }
  const onEvent = (event: RollEvent): void => void events.push(event)
  const run = startRoll(lb, web, { act, clock, onEvent, ...options })
  if (when === 'drains') {
    await clock.advance(2_000)
    void close().then(() => end?.())
  }
  const report = await clock.runUntil(run.done)
  return { lb, report, calls, told, events }
}

describe('a server that an operator closes', () => {
  test.each(CLOSINGS)('while it $when ($steps, seal $seal) is left so, and said', async (one) => {
    const { lb, report, calls, told, events } = await closed(one)
    expect(lb.state(WEB1)).toBe(one.steps.at(-1))
    expect(report.outcome).toBe('done')
    expect(report.leftAsFound).toEqual([WEB1])
    expect(report.leftDrained).toEqual([])
    expect(calls).toEqual(['web1 1', 'web2 1', 'web3 1'])
    const said = events.filter(({ type }) => type === 'fault' || type === 'overruled')
    expect(said.at(-1)).toMatchObject({ ref: WEB1 })
    expect(told).toHaveLength(one.when === 'acts' && one.steps[0] !== 'maint' ? 1 : 0)
  })

  test('holds under another drain is left to that one, and said', async () => {
    const { clock, lb } = setUp(3)
    let other: ReturnType<typeof startDrain> | undefined
    const { act } = actor(clock, async ({ ref }) => {
      if (ref.member === 'web1') other = startDrain(lb, WEB1, { clock, keepReady: 0 })
    })
    const report = await clock.runUntil(startRoll(lb, web, { act, clock }).done)
    expect(report).toMatchObject({ outcome: 'done', leftAsFound: [WEB1] })
    expect(lb.state(WEB1)).not.toBe('ready')
    await clock.runUntil(other!.restore())
    expect(lb.state(WEB1)).toBe('ready')
  })
})
