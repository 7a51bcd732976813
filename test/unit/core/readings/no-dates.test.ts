import { expect, test } from 'vitest'
import { resumeDrain, startDrain } from 'drainable'
import { web1 } from '../set-up.js'
import { balancer, json, seeThrough, withPresent } from '../balancer.js'

test.each(['freshness', 'blind', 'lateBound', 'minTimeout', 'minInterval'] as const)(
  'a %s that no date can hold is refused',
  async (field) => {
    const { clock, lb } = balancer({ capabilities: { [field]: 1e300 } })
    const run = startDrain(lb, web1, { clock, onTimeout: 'proceed' })
    const report = await clock.runUntil(run.done)
    expect(report).toMatchObject({ outcome: 'refused', error: { code: 'PROVIDER_FAILED' } })
    expect(report.error?.message).toContain(field)
  },
)

test('a sample at minus infinity is unread, and the ticket stays readable', async () => {
  const { clock, lb } = balancer()
  seeThrough(lb, (snapshot) =>
    withPresent(snapshot, (reading) => ({
      ...reading,
      scopes: reading.scopes.map((scope) => ({ ...scope, sampledAt: -Infinity })),
    })),
  )
  const run = startDrain(lb, web1, { clock, timeout: '5s' })
  expect((await clock.runUntil(run.done)).outcome).toBe('timeout')
  const ticket = json(await run.ticket)
  await run.release()
  await resumeDrain(lb, ticket, { clock }).release()
})
