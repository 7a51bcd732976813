import type { Fate } from './balancer.js'
import type { Children } from './children.js'
import { kill, type Kill, type Recovery } from './kill.js'
import type { Story } from './wire.js'

/** How many at a time: they wait for the most part. */
const JOBS = 4

/** A story, to be ended at each of its points. */
export interface Plan {
  readonly story: Story
  /** Taken in turn. */
  readonly recoveries: readonly Recovery[]
}

export const PLANS: readonly Plan[] = [
  { story: 'drain', recoveries: ['restore', 'resume', 'again'] },
  { story: 'action', recoveries: ['resume', 'restore'] },
  { story: 'reload', recoveries: ['restore', 'resume'] },
  { story: 'group', recoveries: ['resume', 'restore', 'again'] },
  { story: 'abort', recoveries: ['restore', 'resume'] },
  { story: 'removed', recoveries: ['restore', 'resume'] },
  { story: 'steps', recoveries: ['restore', 'steps', 'resume'] },
  { story: 'resume', recoveries: ['restore', 'resume'] },
  { story: 'restore', recoveries: ['resume', 'restore'] },
  // It opens what any client drained and has no ticket of its own: what it left half open, it opens when it is called again.
  { story: 'ready', recoveries: ['ready'] },
]

export interface KilledEverywhere {
  readonly planned: number
  /** Two runs are not the same to the last look: some end before their last points. */
  readonly killed: number
  /** What was found wrong, and where. */
  readonly broken: readonly string[]
}

/**
 * Kills one child at each point; a change on its way is carried out, lost, or carried out late, when the
 * next process has looked already.
 *
 * @param most - that many of all, evenly
 */
export async function killEverywhere(
  { story, recoveries }: Plan,
  children: Children,
  most = Infinity,
): Promise<KilledEverywhere> {
  let turn = 0
  const next = (): Recovery => recoveries[turn++ % recoveries.length]!
  const dry = await kill({ story, at: 0, fate: 'done', recovery: next() }, children)
  const all = dry.points.flatMap((point, i): Kill[] =>
    fatesOf(point, story).map((fate) => ({ story, at: i + 1, fate, recovery: next() })),
  )
  const kills = evenly(all, most)
  const planned = kills.length
  const broken = dry.broken.map((what) => `not killed: ${what}`)
  let killed = 0
  const work = async (): Promise<void> => {
    for (let one = kills.shift(); one !== undefined; one = kills.shift()) {
      const { at, fate, recovery } = one
      let result = await kill(one, children)
      if (!result.killed) {
        broken.push(...result.broken.map((what) => `not killed: ${what}`))
        // A run on a busy machine looks less often and passes fewer points: killed at the same share of them.
        const share = Math.floor((at * result.points.length) / dry.points.length)
        result = await kill({ ...one, at: share }, children)
      }
      if (result.killed) killed += 1
      const where = `${at} of ${dry.points.length} (${result.points.at(-1)}, ${fate}; ${recovery})`
      broken.push(...result.broken.map((what) => `killed at ${where}: ${what}`))
    }
  }
  await Promise.all(Array.from({ length: JOBS }, work))
  return { planned, killed, broken }
}

function fatesOf(point: string, story: Story): readonly Fate[] {
  if (!point.startsWith('apply sent')) return ['done']
  return story === 'group' ? ['done', 'lost', 'late', 'half'] : ['done', 'lost', 'late']
}

/** The middle one of each of so many parts: the very last points are not reached by every run. */
function evenly<T>(all: readonly T[], most: number): T[] {
  const share = Math.min(1, most / all.length)
  return all.filter((_, i) => Math.floor((i + 1) * share + 0.5) > Math.floor(i * share + 0.5))
}
