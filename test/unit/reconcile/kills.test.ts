import { expect, it } from 'vitest'
import { web } from './set-up.js'
import { World } from './world.js'

const END = { 'ctl-a': 'ready', 'ctl-b': 'ready', 'ctl-c': 'gone', 'ctl-d': 'maint' }

/** One story, in which the process dies at its n-th call; whether it did, and what is wrong afterwards. */
async function play(n: number): Promise<{ died: boolean; wrong: readonly string[] }> {
  const world = new World(() => 0)
  await world.learn()
  world.begin('ctl-b')
  world.wanted = { 'ctl-a': 'serve', 'ctl-b': 'drain', 'ctl-c': 'absent', 'ctl-d': 'serve' }
  const first = world.process({}, n)
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
  // A hold that was sent and not answered may be anybody's: it is left alone, and named with the way to open it.
  const named = next.loop.status().filter(({ held }) => held?.includes('ready()') === true)
  if (named.length > 1) wrong.push(`call ${n}: ${named.length} are left to whoever set them`)
  for (const [name, state] of Object.entries(END)) {
    const found = world.lb.state(web(name))
    const isNamed = named.some(({ ref }) => ref.member === name)
    if (found !== state && !isNamed) wrong.push(`call ${n}: ${name} is ${found}, not ${state}`)
  }
  await world.clock.runUntil(next.loop.close())
  return { died, wrong }
}

it('killed at any call, another process goes on', async () => {
  const wrong: string[] = []
  let n = 0
  for (let died = true; died;) {
    n += 1
    const end = await play(n)
    wrong.push(...end.wrong)
    died = end.died && n < 60
  }
  expect(wrong).toEqual([])
  expect(n).toBeGreaterThan(20)
}, 120_000)
