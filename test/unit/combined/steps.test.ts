import { describe, expect, test } from 'vitest'
import { fakeProvider } from 'drainable/testing'
import {
  combineProviders,
  restore,
  stepDrain,
  type DrainableProvider,
  type DrainStep,
} from 'drainable'
import { a1, b1, bare, setUp } from './set-up.js'

/** Another object for the balancer, as each process of a cron job has one. */
function another(lb: DrainableProvider): DrainableProvider {
  return {
    specVersion: 1,
    name: lb.name,
    instance: lb.instance,
    describe: (ctx) => lb.describe(ctx),
    observe: (refs, ctx) => lb.observe(refs, ctx),
    apply: (changes, ctx) => lb.apply(changes, ctx),
    close: () => lb.close(),
    [Symbol.asyncDispose]: () => lb.close(),
  }
}

/** A step a second, each with providers of its own, until the outcome, but not for more than two minutes. */
async function stepsWithoutB(
  onTimeout: 'fail' | 'proceed',
  from: 'the beginning' | 'the second step',
): Promise<DrainStep> {
  const { clock, a, b } = setUp()
  const process = (): DrainableProvider => combineProviders({ a: another(a), b: another(b) })
  if (from === 'the beginning') b.disconnect()
  const policy = { timeout: '30s', onUnreachable: 'wait', onTimeout } as const
  let step = await clock.runUntil(stepDrain(process(), { target: [a1, b1], policy }, { clock }))
  b.disconnect()
  for (let n = 0; n < 120 && step.outcome === undefined; n += 1) {
    await clock.advance(1_000)
    step = await clock.runUntil(stepDrain(process(), step.ticket, { clock }))
  }
  return step
}

describe.each(['the beginning', 'the second step'] as const)(
  'without a balancer from %s on',
  (from) => {
    test('steps end at the deadline as unreachable', async () => {
      const { outcome, why } = await stepsWithoutB('fail', from)
      expect(outcome).toBe('unreachable')
      expect(why[0]).toMatchObject({ code: 'unreadable', ref: { balancer: 'b' } })
    })

    test('steps proceed at the deadline under onTimeout proceed', async () => {
      const { outcome } = await stepsWithoutB('proceed', from)
      expect(outcome).toBe('proceeded')
    })
  },
)

test('a step with the ticket of other balancers under the same keys is refused', async () => {
  const { clock, a, all } = setUp()
  const { ticket } = await clock.runUntil(stepDrain(all, { target: [a1, b1] }, { clock }))
  const others = { pools: { web: ['web1'] }, clock }
  const c = fakeProvider({ ...others, instance: 'c' })
  await expect(
    clock.runUntil(stepDrain(combineProviders({ a, b: c }), ticket, { clock })),
  ).rejects.toMatchObject({ code: 'TICKET_INVALID', message: /parts: ticket .* belongs to/ })
  expect(c.state({ pool: 'web', member: 'web1' })).toBe('ready')
})

describe('where one balancer is idle seconds before the other', () => {
  /** The first step announces the holds, the second one sends them. */
  async function secondStep(
    how: { readonly workAfter?: number; readonly limit?: '15s' } = {},
  ): Promise<{ readonly outcome: DrainStep['outcome']; readonly load: number }> {
    const { clock, a, all } = setUp({}, { b: { capabilities: { blind: 10_000 } } })
    const { workAfter, limit } = how
    const options = { clock, ...(limit === undefined ? {} : { limit }) }
    const policy = { timeout: '1m', settle: '100ms', seal: false } as const
    const { ticket } = await clock.runUntil(stepDrain(all, { target: [a1, b1], policy }, options))
    if (workAfter !== undefined) clock.setTimeout(() => a.occupy(bare), workAfter)
    const { outcome } = await clock.runUntil(stepDrain(all, ticket, options))
    return { outcome, load: a.load(bare) }
  }

  test('a step says idle once both are', async () => {
    expect(await secondStep()).toEqual({ outcome: 'idle', load: 0 })
    expect(await secondStep({ limit: '15s' })).toEqual({ outcome: 'idle', load: 0 })
  })

  test.each([500, 5_000, 9_990])(
    'a step does not say idle for work that came on the first one %d ms on',
    async (workAfter) => {
      expect(await secondStep({ workAfter })).toEqual({ outcome: undefined, load: 1 })
      const outcome = await secondStep({ workAfter, limit: '15s' })
      expect(outcome).toEqual({ outcome: undefined, load: 1 })
    },
  )
})

describe('a balancer that was away when the others began, and then refuses', () => {
  /** Steps until the outcome: B is away for the first two, and then has no such member. */
  async function stepsThenRefused(): Promise<{
    readonly step: DrainStep
    readonly states: string[]
  }> {
    const { clock, a, b, all } = setUp({}, { b: { pools: { other: ['web1'] } } })
    b.disconnect()
    const policy = { timeout: '5m', onUnreachable: 'wait' } as const
    let step = await clock.runUntil(stepDrain(all, { target: [a1, b1], policy }, { clock }))
    step = await clock.runUntil(stepDrain(all, step.ticket, { clock }))
    b.connect()
    step = await clock.runUntil(stepDrain(all, step.ticket, { clock }))
    const before = a.state(bare)
    const { outcome } = await clock.runUntil(restore(all, step.ticket, { clock }))
    return { step, states: [before, outcome, a.state(bare)] }
  }

  test('ends the steps as refused, and says which one', async () => {
    const { step } = await stepsThenRefused()
    expect(step.outcome).toBe('refused')
    expect(step.why[0]).toMatchObject({ code: 'refused', ref: b1, text: /^b: .*not found/ })
  })

  test('leaves a ticket by which the others are opened', async () => {
    expect((await stepsThenRefused()).states).toEqual(['maint', 'restored', 'ready'])
  })
})
