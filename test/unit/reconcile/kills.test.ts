import { describe, it } from 'vitest'
import { AT_ANY, expectEveryDeath } from '../../support/deaths.js'
import { web } from './set-up.js'
import { World, type Death } from './world.js'

const END = { 'ctl-a': 'ready', 'ctl-b': 'ready', 'ctl-c': 'gone', 'ctl-d': 'maint' }
/** More calls than one story has. */
const MOST = 1_000

/** One story, in which the process dies at one of its calls; whether it did, and what is wrong afterwards. */
async function play(death: Death): Promise<{ died: boolean; wrong: readonly string[] }> {
  const world = new World(() => 0)
  await world.learn()
  world.begin('ctl-b')
  world.wanted = { 'ctl-a': 'serve', 'ctl-b': 'drain', 'ctl-c': 'absent', 'ctl-d': 'serve' }
  const first = world.process({}, death)
  world.set(first.loop)
  await world.clock.advance(3_000)
  world.wanted = { ...world.wanted, 'ctl-b': 'serve', 'ctl-d': 'drain' }
  world.set(first.loop)
  await world.clock.advance(3_000)
  const died = first.isDead
  await first.kill()
  world.endWork()
  const next = world.process()
  world.set(next.loop)
  await world.clock.runUntil(next.loop.settled(), 600_000)
  const wrong = [...world.wrong]
  // An unanswered hold has no certain owner: it is left alone, and reported with the way to open it.
  const named = next.loop.status().filter(({ held }) => held?.includes('ready()') === true)
  if (named.length > 1) wrong.push(`${named.length} are left to whoever set them`)
  for (const [name, state] of Object.entries(END)) {
    const found = world.lb.state(web(name))
    const isNamed = named.some(({ ref }) => ref.member === name)
    if (found !== state && !isNamed) wrong.push(`${name} is ${found}, not ${state}`)
  }
  await world.clock.runUntil(next.loop.close())
  return { died, wrong: wrong.map((what) => `call ${death.at}: ${what}`) }
}

describe(`a reconciler that is killed at ${AT_ANY} of its calls`, () => {
  it.each(['done', 'lost'] as const)(
    'is continued by another process if that call is %s',
    (last) => expectEveryDeath(play, last, { least: 20, most: MOST }),
    120_000,
  )
})
