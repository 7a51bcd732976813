import { afterEach, expect, test, vi } from 'vitest'
import { DrainableError, ready, restore, stepDrain, type Ticket } from 'drainable'
import { Random } from '../../../model/random.js'
import { cases, casesOf } from '../../../support/cases.js'
import { only, thrown, web1 } from '../set-up.js'
import { stepped } from '../stepped.js'
import { hostClock } from './host-clock.js'
import {
  isHold,
  isOpening,
  json,
  loseAnswer,
  ofKind,
  recordChanges,
  rig,
  type Rig,
} from '../rig.js'

afterEach(() => vi.restoreAllMocks())

const LATE_BOUND = 1_000

/** Answers to changes get lost, before or after the change; some are carried out late. */
function loseSome({ clock, lb }: Rig, random: Random, share: number): void {
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    if (!random.chance(share)) return apply(changes, ctx)
    const free = { signal: new AbortController().signal, clock }
    const when = random.pick(['never', 'now', 'late'])
    if (when === 'now') await apply(changes, free)
    if (when === 'late')
      clock.setTimeout(() => void apply(changes, free), random.int(1, LATE_BOUND - 1))
    throw new DrainableError('CONNECTION_LOST', 'the answer was lost')
  }
}

/** Whether a hold was seen in force: one that is only intended may be any client's, for another process. */
function isKnown({ members }: Ticket): boolean {
  return members[0]?.set != null
}

/** Steps until the outcome, then undoes it: no other client touches the member. */
async function play(seed: number): Promise<string> {
  const random = new Random(seed)
  const both = rig({ capabilities: { lateBound: LATE_BOUND } })
  const { clock, lb } = both
  const host = hostClock(clock)
  loseSome(both, random, random.pick([0.2, 0.5, 0.8]))
  const policy = { hold: random.pick(['drain', 'maint'] as const), timeout: '1h' } as const
  let step = await stepped(lb, { target: web1, policy }, { clock })
  let end = (): void => undefined
  for (let i = 0; i < 400 && step.outcome === undefined; i += 1) {
    await clock.advance(step.againIn + random.pick([0, 0.4, 3.7, 50, 700]))
    if (random.chance(0.05)) host.jumpWall(random.pick([-5_000, -0.5, 0.7, 3_000]))
    if (random.chance(0.02)) host.jumpWall(random.pick([0, 1_000, 60_000]))
    if (random.chance(0.1)) {
      end()
      end = i < 100 && random.chance(0.5) ? lb.occupy(web1) : () => undefined
    }
    step = await clock.runUntil(stepDrain(lb, json(step.ticket), { clock }))
    if (isKnown(step.ticket) && random.chance(0.02)) break
  }
  end()
  const report = await clock.runUntil(restore(lb, json(step.ticket), { clock }), 600_000)
  await clock.advance(5 * LATE_BOUND)
  const { outcome, error } = only(report)
  return [step.outcome ?? 'left', outcome, lb.state(web1), error?.message ?? 'no error'].join(', ')
}

const CHUNK = 30

test.each([1, 31, 61, 91, 121])(
  `steps with lost answers are undone whole, ${casesOf(CHUNK)} seeds from %i`,
  async (first) => {
    for (let seed = first; seed < first + cases(CHUNK); seed += 1)
      expect(await play(seed), `seed ${seed}`).toMatch(/^(idle|left), restored, ready, no error$/)
  },
)

test('a removal waits for a lost hold by the clock of its own machine', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 30_000 } })
  const host = hostClock(clock)
  loseAnswer(lb, clock, isHold)
  const sent = recordChanges(lb, clock)
  const policy = { until: 'removed', seal: false, timeout: '1h' } as const
  let step = await stepped(lb, { target: web1, policy }, { clock })
  const go = async (): Promise<void> => {
    await clock.advance(step.againIn)
    step = await clock.runUntil(stepDrain(lb, json(step.ticket), { clock }))
  }
  while (ofKind(sent, 'hold').length < 2) await go()
  await go()
  const [lost] = ofKind(sent, 'hold')
  host.jumpWall(60_000)
  while (step.outcome === undefined) await go()
  expect(step.outcome).toBe('removed')
  expect(clock.now() - lost!.at).toBeGreaterThan(30_000)
})

test('steps do not wait again and again for changes of their own ticket', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 1_000 } })
  lb.setBehind(web1, 'drain')
  loseAnswer(lb, clock, isOpening)
  const opening = thrown(ready(lb, web1, { clock })) // the opening may still come, and would end an idle
  await clock.advance(0)
  let step = await stepped(lb, { target: web1, policy: { timeout: '1m' } }, { clock })
  for (let i = 0; i < 40 && step.outcome === undefined; i += 1) {
    await clock.advance(step.againIn)
    step = await clock.runUntil(stepDrain(lb, json(step.ticket), { clock }))
    expect(step.ticket.members[0]!.late.length).toBeLessThan(3)
  }
  expect(step.outcome).toBe('idle')
  expect(await opening).toMatchObject({ code: 'DRAIN_OVERRULED' })
})
