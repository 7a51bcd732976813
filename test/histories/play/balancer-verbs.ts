/** Commands about what happens at a balancer, and what it shows. */
import type { AdminState, Capabilities, ErrorCode, Health } from 'drainable'
import { bare, type World } from './world.js'
import { DEFAULT_BALANCER } from './view.js'
import type { Balancer } from './balancer.js'
import { milliseconds, nameOf, options, refOf, valueOf } from './names.js'
import { FIRST_PROCESS } from './lines.js'

/** What a command is given: the words behind its verb. */
export type WorldVerb = (world: World, words: readonly string[]) => void | Promise<void>

const DURATIONS = ['blind', 'freshness', 'lateBound', 'minInterval', 'minTimeout']
const FLAGS = [
  'noRemove',
  'noTerminate',
  'countsUntilRemoved',
  'keepsStates',
  'noArrivals',
  'noMaint',
  'removalReloads',
]

/** `provider east members a,b processes p1,p2 maint cuts lateBound 5s` */
const provider: WorldVerb = (world, words) => {
  const isNamed = words.length % 2 === 1 - (words.filter((word) => FLAGS.includes(word)).length % 2)
  const name = isNamed ? words[0]! : DEFAULT_BALANCER
  const given = options(isNamed ? words.slice(1) : words, FLAGS)
  const list = (key: string, otherwise: string): string[] =>
    String(given[key] ?? otherwise).split(',')
  const durations = Object.fromEntries(
    DURATIONS.filter((key) => key in given).map((key) => [key, milliseconds(String(given[key]))]),
  )
  const capabilities: Partial<Capabilities> = {
    ...durations,
    ...(given['maint'] === undefined ? {} : { maint: given['maint'] as Capabilities['maint'] }),
    ...(given['removal'] === undefined
      ? {}
      : { removal: given['removal'] as NonNullable<Capabilities['removal']> }),
    ...(given['counts'] === undefined ? {} : { counts: given['counts'] as Capabilities['counts'] }),
    ...(given['noRemove'] === true ? { remove: false } : {}),
    ...(given['removalReloads'] === true ? { removalReloads: true } : {}),
    ...(given['noTerminate'] === true ? { terminate: false } : {}),
    ...(given['countsUntilRemoved'] === true ? { countsAfterRemove: false } : {}),
    ...(given['keepsStates'] === true ? { survivesReload: true } : {}),
    ...(given['noMaint'] === true ? { ladder: ['ready', 'drain'], maint: 'none' } : {}),
  }
  world.addBalancer({
    name,
    members: list('members', 'a,b,c').map(refOf),
    processes: list('processes', 'p1'),
    capabilities,
    ...(given['whenNone'] === undefined ? {} : { whenNone: given['whenNone'] as 'all' }),
  })
  world.balancerOf(name === DEFAULT_BALANCER ? {} : { balancer: name }).countsArrivals =
    given['noArrivals'] !== true
}

/** The balancer that the first word names, or the one that needs no name. */
function named(world: World, words: readonly string[]): [Balancer, readonly string[]] {
  const [first = '', ...rest] = words
  if (world.balancers.has(first)) return [world.balancerOf({ balancer: first }), rest]
  return [world.balancerOf({}), words]
}

function work(kind: 'occupy' | 'queue'): WorldVerb {
  return (world, [member = '', count = '1', , process]) => {
    const ref = refOf(member)
    world.balancerOf(ref).work(kind, bare(ref), Number(count), process)
  }
}

/** `done a` ends all of it, `done a 2` two requests. */
const done: WorldVerb = (world, [member = '', count]) => {
  const ref = refOf(member)
  const number = count === undefined ? Infinity : Number(count)
  world.balancerOf(ref).endWork('occupy', bare(ref), number)
  if (count === undefined) world.balancerOf(ref).endWork('queue', bare(ref))
}

/** Requests that come and go between two looks. */
const arrive: WorldVerb = (world, [member = '', count = '1', , process]) => {
  const ref = refOf(member)
  world.balancerOf(ref).fake.arrive(bare(ref), Number(count), process)
}

const operator: WorldVerb = (world, [member = '', to]) => {
  const ref = refOf(member)
  world.balancerOf(ref).fake.setBehind(bare(ref), to as AdminState | 'gone')
}

const identity: WorldVerb = (world, [member = '', to = '']) => {
  const ref = refOf(member)
  world.balancerOf(ref).fake.setIdentity(bare(ref), to === 'none' ? '' : to)
}

const health: WorldVerb = (world, [member = '', to]) => {
  const ref = refOf(member)
  world.balancerOf(ref).fake.setHealth(bare(ref), to as Health)
}

const inherits: WorldVerb = (world, [member = '', to]) => {
  const ref = refOf(member)
  world
    .balancerOf(ref)
    .fake.setInherited(bare(ref), to === 'nothing' ? undefined : (to as AdminState))
}

/** `shows a own unknown`: a look says so, whatever is true; `shows a truth` ends it. */
const shows: WorldVerb = (world, [member = '', field = '', ...words]) => {
  const ref = refOf(member)
  const { shown } = world.balancerOf(ref)
  const key = nameOf(bare(ref))
  if (field === 'truth') shown.delete(key)
  else {
    const value = valueOf(words.join(' '))
    shown.set(key, { ...shown.get(key), [field]: field === 'hints' ? [value] : value })
  }
}

/** `says p1 lived 5000`: the same of a process; `says p1 truth` ends it. */
const says: WorldVerb = (world, words) => {
  const [balancer, [name = '', field = '', ...rest]] = named(world, words)
  if (field === 'truth') balancer.says.delete(name)
  else balancer.says.set(name, { ...balancer.says.get(name), [field]: valueOf(rest.join(' ')) })
}

/** `server api/x of a`: the two are one machine, at one address */
const server: WorldVerb = (world, [member = '', , other = '']) => {
  const ref = refOf(member)
  return world.balancerOf(ref).share(bare(ref), bare(refOf(other)))
}

/** `reload`, `reload cut`, `reload east` */
const reload: WorldVerb = (world, words) => {
  const [balancer, rest] = named(world, words)
  balancer.reload(rest.includes('cut'))
}

/** `scope p2 unread`, `read`, `ended`, `new`, `released`, `late` (not in force), `taken` */
const scope: WorldVerb = (world, words) => {
  const [balancer, [name = '', how]] = named(world, words)
  const wishes: Record<string, object> = {
    unread: { state: 'unread' },
    read: { state: 'read' },
    new: {},
    ended: { state: 'ended' },
    released: { released: true },
    late: { inForce: false },
    taken: { inForce: true },
  }
  const wish = wishes[how ?? '']
  if (wish === undefined) throw new Error(`a process can't be '${String(how)}'`)
  balancer.setProcess({ scope: name, ...wish })
}

/** `looks fail`, `looks hang`, `looks come` */
const looks: WorldVerb = (world, words) => {
  const [balancer, [how]] = named(world, words)
  balancer.looks = how as Balancer['looks']
}

/** `answers wait`, `answers come`, `answers lost`, `answers refused CONFLICT` */
const answers: WorldVerb = async (world, words) => {
  const [balancer, [how, code = 'REJECTED']] = named(world, words)
  if (how === 'come') await balancer.answerAll()
  else if (how === 'refused') balancer.answers = { how, code: code as ErrorCode }
  else balancer.answers = { how: how as 'wait' | 'lost' }
}

const WORDS = ['applied', 'refused', 'unknown']

/** The member that the first word may name, on its balancer. */
function addressed(
  world: World,
  words: readonly string[],
): [Balancer, string | undefined, readonly string[]] {
  const [first, ...rest] = words
  if (first === undefined || WORDS.includes(first)) {
    // Where there are several, the one that has something waiting is named by a member.
    return [world.balancerOf({}), undefined, words]
  }
  const ref = refOf(first)
  return [world.balancerOf(ref), nameOf(bare(ref)), rest]
}

/** `answer`, `answer b`, `answer refused CONFLICT`, `answer b unknown` */
const answer: WorldVerb = async (world, words) => {
  const [balancer, member, how] = addressed(world, words)
  await balancer.answer(member, how)
}

/** The connection of the call breaks: what it asked for is not carried out, or later, by `lands`. */
const lost: WorldVerb = async (world, words) => {
  const [balancer, member] = addressed(world, words)
  await balancer.lose(member)
}

/** The balancer carries it out, and its answer is still under way. */
const carried: WorldVerb = async (world, words) => {
  const [balancer, member] = addressed(world, words)
  await balancer.carryOut(member)
}

/** What was lost is carried out after all. */
const lands: WorldVerb = async (world, words) => {
  const [balancer, member] = addressed(world, words)
  world.lines.say(FIRST_PROCESS, await balancer.land(member))
}

/** What the balancer shows now: state, then each process with active+queued. */
const look: WorldVerb = async (world, words) => {
  const all = world.balancers.size === 0 ? [world.balancerOf({})] : [...world.balancers.values()]
  for (const balancer of all) {
    const prefix = balancer.name === DEFAULT_BALANCER ? '' : `${balancer.name}:`
    const wanted = words
      .filter((word) => word.startsWith(prefix))
      .map((word) => word.slice(prefix.length))
    if (words.length > 0 && wanted.length === 0) continue
    for (const line of await balancer.look(wanted)) world.lines.say(FIRST_PROCESS, prefix + line)
  }
}

/** `view two sees p1,p2` is another provider object of the balancer; `view two of east sees p1` */
const view: WorldVerb = (world, [name = '', ...words]) => {
  const given = options(words)
  const sees = given['sees'] === undefined ? {} : { sees: String(given['sees']).split(',') }
  world.views.set(name, { balancer: String(given['of'] ?? DEFAULT_BALANCER), ...sees })
}

/** Time passes. */
const advance: WorldVerb = (world, [time = '']) => world.pass(milliseconds(time))

/** `lease lost`: another client takes it, `lease free` */
const lease: WorldVerb = (world, [how]) => {
  if (how === 'lost') world.lease.seize('another client')
  else world.lease.failNext('throw', how === 'broken' ? Infinity : 0)
}

/** Every command that no process gives. */
export const WORLD_VERBS: Readonly<Record<string, WorldVerb>> = {
  provider,
  busy: work('occupy'),
  queue: work('queue'),
  done,
  arrive,
  operator,
  identity,
  health,
  inherits,
  shows,
  says,
  server,
  reload,
  scope,
  looks,
  answers,
  answer,
  lost,
  carried,
  lands,
  look,
  view,
  advance,
  lease,
}
