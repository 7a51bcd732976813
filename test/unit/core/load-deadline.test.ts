import { startDrain, watch, type LoadEvent } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { expect, it } from 'vitest'

const web1 = { pool: 'web', member: 'web1' }

it('load events of a drain carry its deadline', async () => {
  const clock = fakeClock()
  await using lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const end = lb.occupy(web1)
  const loads: LoadEvent[] = []
  await using run = startDrain(lb, web1, { clock, timeout: '1m' })
  run.on('load', (event) => loads.push(event))
  await clock.advance(10_000)
  const [first] = loads
  const left = Date.parse(first?.deadline ?? '') - Date.parse(first?.at ?? '')
  expect(left).toBeGreaterThan(55_000)
  expect(left).toBeLessThanOrEqual(60_100)
  end()
})

it('load events of a watch and of a drain without end have none', async () => {
  const clock = fakeClock()
  await using lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const end = lb.occupy(web1)
  const deadlines: (string | null)[] = []
  const hear = (event: LoadEvent): number => deadlines.push(event.deadline)
  await using view = watch(lb, web1, { clock })
  await using run = startDrain(lb, web1, { clock, timeout: Infinity })
  view.on('load', hear)
  run.on('load', hear)
  await clock.advance(10_000)
  expect(new Set(deadlines)).toEqual(new Set([null]))
  end()
})
