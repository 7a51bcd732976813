/**
 * How soon idle is said on a balancer that answers at once, alone and beside one whose every answer takes
 * 2 s: from the end of the last request, and from the beginning of a drain without work. Times are those of the fake
 * clock: waits, no CPU.
 *
 * `npm run bench core/parts`
 */
import { combineProviders, startDrain, type DrainEvent } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'

const WEB1 = { pool: 'web', member: 'web1' }
const pools = { web: ['web1', 'web2'] }
const SLOW = 2_000
/** Moments at which the last request ends: a look may just be over, or about to be. */
const ENDS = Array.from({ length: 20 }, (_, n) => 20_000 + n * 137)
/** How much longer it may take beside the slow one. */
const AIM = 0.1

/** Milliseconds from the end of the work, or from the beginning where there is none, until idle is said. */
async function idleAfter(isBeside: boolean, end: number | undefined): Promise<number> {
  const clock = fakeClock()
  const fast = fakeProvider({ pools, clock, instance: `fast-${isBeside}-${end}` })
  const slow = fakeProvider({ pools, clock, instance: `slow-${isBeside}-${end}`, latency: SLOW })
  const lb = isBeside ? combineProviders({ fast, slow }) : combineProviders({ fast })
  if (end !== undefined) {
    const free = fast.occupy(WEB1)
    clock.setTimeout(free, end)
  }
  let said = NaN
  const onEvent = (event: DrainEvent): void => {
    if (event.type === 'idle' && event.ref.balancer === 'fast') said = clock.now()
  }
  const keys = isBeside ? ['fast', 'slow'] : ['fast']
  const target = keys.map((balancer) => ({ ...WEB1, balancer }))
  const run = startDrain(lb, target, { clock, timeout: '10m', onEvent })
  await clock.runUntil(run.done)
  await run.release()
  return said - (end ?? 0)
}

const mean = (all: readonly number[]): number => all.reduce((a, b) => a + b, 0) / all.length
const alone: number[] = []
const beside: number[] = []
for (const end of ENDS) {
  alone.push(await idleAfter(false, end))
  beside.push(await idleAfter(true, end))
}
const more = mean(beside) / mean(alone) - 1
console.log(
  `idle ${mean(alone).toFixed(0)} ms after the last request alone, ${mean(beside).toFixed(0)} ms beside a part of ${SLOW} ms: ${(more * 100).toFixed(1)} % more`,
)
console.log(
  `without work, from the beginning: ${await idleAfter(false, undefined)} ms alone, ${await idleAfter(true, undefined)} ms beside it, because nothing is changed before each of them was looked at`,
)
if (!(more <= AIM)) process.exitCode = 1
