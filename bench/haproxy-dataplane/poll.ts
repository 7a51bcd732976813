/**
 * What a look costs, and what it asks of the API: one dump of the statistics however many members
 * are drained. Against the stand-in, so the time is ours (decoding, judging) and its own; a real API
 * adds about 0.2 ms for each server of the process.
 */
import { systemClock } from '../../src/provider/clock.js'
import { drain } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { startFake } from 'drainable/testing/haproxy-dataplane'

const ROUNDS = 9
const ctx = { signal: new AbortController().signal, clock: systemClock }
const rows: Record<string, string | number>[] = []

for (const servers of [10, 100, 1_000, 5_000]) {
  for (const drained of [1, 50]) {
    const names = Array.from({ length: servers }, (_, i) => `s${i + 1}`)
    await using fake = await startFake({ pools: { web: names } })
    await using lb = haproxyDataplane({
      url: fake.url,
      username: 'admin',
      password: 'secret',
      maintCuts: false,
    })
    const refs = names.slice(0, drained).map((member) => ({ pool: 'web', member }))
    await lb.observe(refs, ctx)
    const before = fake.requests.length
    const times: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      const from = performance.now()
      await lb.observe(refs, ctx)
      times.push(performance.now() - from)
    }
    const requests = (fake.requests.length - before) / ROUNDS
    const from = performance.now()
    await lb.apply(
      refs.map((ref) => ({ kind: 'hold', ref, to: 'drain' }) as const),
      ctx,
    )
    rows.push({
      servers,
      members: refs.length,
      'look ms': median(times),
      'requests a look': requests,
      'drain them all ms': Number((performance.now() - from).toFixed(1)),
    })
  }
}
console.table(rows)
console.table(await Promise.all([5, 100].map(idleDrain)))

/** All that the drain of an idle server asks, at an API whose statistics take that long, ms. */
async function idleDrain(statsCost: number): Promise<Record<string, number>> {
  await using fake = await startFake({ pools: { web: ['s1', 's2'] }, statsCost })
  await using lb = haproxyDataplane({
    url: fake.url,
    username: 'admin',
    password: 'secret',
    oldWorkers: 'accept',
  })
  const from = performance.now()
  await drain(lb, { pool: 'web', member: 's1' }, { timeout: '60s' })
  return {
    'statistics ms': statsCost,
    'an idle drain ms': Math.round(performance.now() - from),
    requests: fake.requests.length,
    looks: fake.requests.filter(({ path }) => path.includes('/stats/')).length,
  }
}

function median(times: number[]): number {
  return Number((times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0).toFixed(1))
}
