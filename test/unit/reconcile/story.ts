import { memoryStore, web } from './set-up.js'
import { OURS, randomOf, STRANGERS, World, type Process } from './world.js'

/** So many things happen in a story. */
const ROUNDS = 25

/** Who reconciles: one process, two that share a lease, or two that know nothing of each other. */
export type Mode = 'one process' | 'two under a lease' | 'two without a lease'

/** The processes of one story. */
class Controllers {
  readonly #world: World
  readonly #mode: Mode
  readonly all: Process[]

  constructor(world: World, mode: Mode) {
    this.#world = world
    this.#mode = mode
    this.all = mode === 'one process' ? [this.#begin()] : [this.#begin(), this.#begin()]
  }

  set(): void {
    for (const { loop } of this.all) this.#world.set(loop)
  }

  async kill(n: number): Promise<void> {
    await this.all[n]?.kill()
    this.all[n] = this.#begin()
    this.set()
  }

  #begin(): Process {
    const { lease } = this.#world
    if (this.#mode === 'one process') return this.#world.process()
    if (this.#mode === 'two under a lease') return this.#world.process({ lease })
    return this.#world.process({ tickets: memoryStore() })
  }
}

/** One thing that happens: a set, an operator, a reload, work, a failure, a crash. */
async function happen(world: World, controllers: Controllers): Promise<void> {
  const { random, lb } = world
  const member = OURS[random(OURS.length)] ?? 'ctl-a'
  const anybody = [...OURS, ...STRANGERS]
  switch (random(13)) {
    case 0:
    case 1:
    case 2:
      world.want()
      controllers.set()
      break
    case 3: {
      const to = (['ready', 'drain', 'maint'] as const)[random(3)] ?? 'drain'
      world.operate(anybody[random(anybody.length)] ?? 'vm', to)
      break
    }
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
      if (random(3) === 0) await controllers.kill(random(controllers.all.length))
      break
    case 11:
      world.lease.failNext('throw', 1 + random(12))
      break
    default:
      lb.disconnect()
      world.clock.setTimeout(() => world.connect(), 1 + random(3_000))
  }
}

/** Whether a member is as wanted; where it is not, a row must say why. */
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

/** What is wrong, and how often a place was taken. */
interface End {
  readonly wrong: readonly string[]
  readonly taken: number
}

/** One seed is one story: the waits of our code are drawn from it too. */
export async function play(seed: number, mode: Mode): Promise<End> {
  const chance = randomOf(seed + 1)
  const { random } = Math
  Math.random = () => chance(2 ** 32) / 2 ** 32
  try {
    return await playIn(seed, mode)
  } finally {
    Math.random = random
  }
}

async function playIn(seed: number, mode: Mode): Promise<End> {
  const world = new World(randomOf(seed))
  await world.learn()
  const controllers = new Controllers(world, mode)
  world.want()
  controllers.set()
  for (let round = 0; round < ROUNDS; round += 1) {
    await world.clock.advance(world.random(4) === 0 ? world.random(8_000) : world.random(300))
    await happen(world, controllers)
  }
  world.connect()
  world.endWork()
  world.storeFails = 0
  world.lease.failNext('throw', 0)
  // What failed is tried again with growing waits; what was overruled waits for another set.
  await world.clock.advance(180_000)
  const loops = controllers.all.map(({ loop }) => loop)
  const wantsAny = Object.keys(world.wanted).length > 0
  if (wantsAny) controllers.set()
  const leaders = loops.filter(({ leading }) => leading)
  await world.clock.runUntil(Promise.all(leaders.map((loop) => loop.settled())), 600_000)
  const rows = leaders.flatMap((loop) => loop.status())
  for (const name of OURS) {
    if (!wantsAny || isAsWanted(world, name)) continue
    if (!rows.some(({ ref, held }) => ref.member === name && held !== null))
      world.wrong.push(
        `${name} is ${world.lb.state(web(name))}, wanted ${world.wanted[name] ?? 'nothing'}, and no row says why`,
      )
  }
  if (leaders.length !== (mode === 'two without a lease' ? 2 : 1))
    world.wrong.push(`${leaders.length} lead at the end`)
  await world.clock.runUntil(Promise.all(loops.map((loop) => loop.close())))
  if (world.clock.pending > 0) world.wrong.push(`${world.clock.pending} timers are left`)
  return world
}
