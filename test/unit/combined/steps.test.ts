import { describe, expect, test } from 'vitest'
import { fakeProvider } from 'drainable/testing'
import { combineProviders, stepDrain, type DrainableProvider, type DrainStep } from 'drainable'
import { a1, b1, setUp } from './set-up.js'

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
