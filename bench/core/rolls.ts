/**
 * How long a roll takes against the sum of what it has to wait for: requests that end, the quiet time
 * of the idle rule, the caller's function, the first health check. Times are those of the fake clock: waits, no CPU.
 *
 * `npm run bench core/rolls`
 */
import { roll } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'

const SERVERS = 100
/** How long a request that is in flight when its server's turn comes goes on. */
const WORK = 3_000
const ACT = 5_000
/** The quiet time of a drain, which counts while the last request goes on. */
const SETTLE = 1_000
const AIM = 0.05

async function rollAll(maxUnavailable: number, work: number): Promise<number> {
  const clock = fakeClock()
  const names = Array.from({ length: SERVERS }, (_, n) => `web${n + 1}`)
  const lb = fakeProvider({ pools: { web: names }, clock, instance: `${maxUnavailable}-${work}` })
  const from = clock.now()
  const report = await clock.runUntil(
    roll(
      lb,
      { pool: 'web' },
      {
        clock,
        maxUnavailable,
        timeout: '5m',
        act: () => new Promise((resolve) => void clock.setTimeout(resolve, ACT)),
        onEvent: (event) => {
          if (event.type !== 'phase' || event.from !== 'active' || work === 0) return
          clock.setTimeout(lb.occupy(event.ref), work)
        },
      },
    ),
  )
  if (report.servers.some(({ outcome }) => outcome !== 'done')) process.exitCode = 1
  return clock.now() - from
}

for (const [atOnce, work] of [
  [1, 0],
  [1, WORK],
  [5, WORK],
] as const) {
  const took = await rollAll(atOnce, work)
  const waits = (SERVERS / atOnce) * (Math.max(work, SETTLE) + ACT)
  const more = took / waits - 1
  console.log(
    `${SERVERS} servers, ${atOnce} at once, ${work} ms of work left on each: ${(took / 1_000).toFixed(1)} s, ${(more * 100).toFixed(1)} % more than its waits (${(waits / 1_000).toFixed(1)} s)`,
  )
  if (!(more <= AIM)) process.exitCode = 1
}
