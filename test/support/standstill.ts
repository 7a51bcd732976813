/**
 * A machine that stands still for seconds (a paused guest, a stalled disk) fails tests that have real deadlines, whatever the code
 * does. Loaded into every test process: measures how late the event loop ran without computing, and says so in the failure. `vitest.config.ts` runs a
 * test again whose failure says it, once; `.ci/run` lists those. A failure without it is never tried again.
 */
import { afterEach, beforeEach } from 'vitest'

const BEAT = 100
/** So late is no load: the fakes and the clients of one process share its event loop, and deadlines here are seconds. */
const STILL = 1_000

// Before a test puts fake ones in their place.
const now = performance.now.bind(performance)
let last = now()
let worked = cpu()
let worst = 0

/** Milliseconds that this process computed: a test that blocks its own event loop does not stand still. */
function cpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

function beat(): void {
  const idle = now() - last - (cpu() - worked)
  worst = Math.max(worst, idle - BEAT)
  last = now()
  worked = cpu()
}
/** Files that share a process load this anew each: only the newest watches, or each look at the clock is made hundreds of times. */
const WATCHING = Symbol.for('drainable.test.standstill')
clearInterval(Reflect.get(globalThis, WATCHING) as NodeJS.Timeout | undefined)
Reflect.set(globalThis, WATCHING, setInterval(beat, BEAT).unref())

beforeEach(() => {
  last = now()
  worked = cpu()
  worst = 0
})

afterEach(({ task }) => {
  beat()
  const error = task.result?.errors?.at(-1)
  if (task.result?.state !== 'fail' || error === undefined || worst < STILL) return
  const seconds = (worst / 1_000).toFixed(1)
  error.message += `\nthe machine stood still for ${seconds} s during this test`
  Object.assign(task.meta, { stoodStill: Number(seconds) })
})
