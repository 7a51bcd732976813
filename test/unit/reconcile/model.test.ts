import { describe, expect, it } from 'vitest'
import { OURS, randomOf, World, type Process } from './world.js'
import { web } from './set-up.js'

const ROUNDS = 25
/** So many seeds a test; `RECONCILE_RUNS` and `RECONCILE_FROM` play more of them. */
const RUNS = Number(globalThis.process.env['RECONCILE_RUNS'] ?? 8)
const FROM = Number(globalThis.process.env['RECONCILE_FROM'] ?? 1)

/** One thing that happens: a set, an operator, a reload, work, a failure, a crash. */
async function happen(world: World, process: Process): Promise<Process> {
  const { random, lb } = world
  const member = OURS[random(OURS.length)] ?? 'ctl-a'
  switch (random(12)) {
    case 0:
    case 1:
    case 2:
      world.want()
      world.set(process.loop)
      break
    case 3:
      world.operate(member, (['ready', 'drain', 'maint'] as const)[random(3)] ?? 'drain')
      break
    case 4:
      if (random(2) === 0) world.reload()
      break
    case 5:
    case 6:
      world.begin(member)
      break
    case 7:
      world.endWork(member)
      break
    case 8: {
      const hows = ['throw', 'throw-after', 'unknown', 'reject', 'hang-after'] as const
      const how = hows[random(hows.length)] ?? 'throw'
      const verb = how === 'throw' && random(2) === 0 ? 'observe' : 'apply'
      lb.failNext(how, { verb, times: 1 + random(2), late: random(200) })
      break
    }
    case 9:
      world.storeFails = random(4)
      break
    case 10:
      if (random(3) === 0) {
        await process.kill()
        const next = world.process()
        world.set(next.loop)
        return next
      }
      break
    default:
      lb.disconnect()
      world.clock.setTimeout(() => lb.connect(), 1 + random(3_000))
  }
  return process
}

/** Whether a member is as wanted; where it is not, somebody must have said why. */
function isAsWanted(world: World, name: string): boolean {
  const state = world.lb.state(web(name))
  switch (world.wanted[name]) {
    case 'serve':
      return state === 'ready'
    case 'drain':
    case 'dead':
      return state !== 'ready' // one that was taken out is not added only to be drained
    default:
      return state === 'gone'
  }
}

async function play(seed: number): Promise<readonly string[]> {
  const world = new World(randomOf(seed))
  await world.learn()
  let process = world.process()
  world.want()
  world.set(process.loop)
  for (let round = 0; round < ROUNDS; round += 1) {
    await world.clock.advance(world.random(4) === 0 ? world.random(8_000) : world.random(300))
    process = await happen(world, process)
  }
  world.lb.connect()
  world.endWork()
  world.storeFails = 0
  // What failed is tried again with growing waits; what somebody overruled waits for another set.
  await world.clock.advance(180_000)
  if (Object.keys(world.wanted).length > 0) world.set(process.loop)
  await world.clock.runUntil(process.loop.settled(), 600_000)
  const held = new Map(process.loop.status().map((row) => [row.ref.member, row]))
  for (const name of OURS) {
    if (Object.keys(world.wanted).length === 0 || isAsWanted(world, name)) continue
    const row = held.get(name)
    if (row?.held == null)
      world.wrong.push(
        `${name} is ${world.lb.state(web(name))}, wanted ${world.wanted[name] ?? 'nothing'}, and nobody says why`,
      )
  }
  await world.clock.runUntil(process.loop.close())
  if (world.clock.pending > 0) world.wrong.push(`${world.clock.pending} timers are left`)
  return world.wrong
}

describe('a reconciler in a random world', () => {
  it.each(Array.from({ length: 4 }, (_, i) => FROM + i * RUNS))(
    'touches what is ours, keeps the floor, ends as wanted: seeds from %d',
    async (from) => {
      const wrong: string[] = []
      for (let seed = from; seed < from + RUNS; seed += 1)
        for (const what of await play(seed)) wrong.push(`seed ${seed}: ${what}`)
      expect(wrong).toEqual([])
    },
    120_000,
  )
})
