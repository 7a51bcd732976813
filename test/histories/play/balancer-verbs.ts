/** Commands about what happens at a balancer, and what it shows. */
import type { AdminState, Capabilities, ErrorCode, Health } from 'drainable'
import { bare, type Stage } from './stage.js'
import { DEFAULT_BALANCER } from './door.js'
import type { Balancer } from './balancer.js'
import { milliseconds, nameOf, options, refOf, valueOf } from './names.js'
import { FIRST_PROCESS } from './lines.js'

/** What a command is given: the words behind its verb. */
export type WorldVerb = (stage: Stage, words: readonly string[]) => void | Promise<void>

const DURATIONS = ['blind', 'freshness', 'lateBound', 'minInterval', 'minTimeout']
const FLAGS = [
  'noRemove',
  'noTerminate',
  'countsUntilRemoved',
  'keepsStates',
  'noArrivals',
  'noMaint',
]

/** `provider east members a,b processes p1,p2 maint cuts lateBound 5s` */
const provider: WorldVerb = (stage, words) => {
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
    ...(given['counts'] === undefined ? {} : { counts: given['counts'] as Capabilities['counts'] }),
    ...(given['noRemove'] === true ? { remove: false } : {}),
    ...(given['noTerminate'] === true ? { terminate: false } : {}),
    ...(given['countsUntilRemoved'] === true ? { countsAfterRemove: false } : {}),
    ...(given['keepsStates'] === true ? { survivesReload: true } : {}),
    ...(given['noMaint'] === true ? { ladder: ['ready', 'drain'], maint: 'none' } : {}),
  }
  stage.addBalancer({
    name,
    members: list('members', 'a,b,c').map(refOf),
    processes: list('processes', 'p1'),
    capabilities,
    ...(given['whenNone'] === undefined ? {} : { whenNone: given['whenNone'] as 'all' }),
  })
  stage.balancerOf(name === DEFAULT_BALANCER ? {} : { balancer: name }).countsArrivals =
    given['noArrivals'] !== true
}

/** The balancer that the first word names, or the one that needs no name. */
function named(stage: Stage, words: readonly string[]): [Balancer, readonly string[]] {
  const [first = '', ...rest] = words
  if (stage.balancers.has(first)) return [stage.balancerOf({ balancer: first }), rest]
  return [stage.balancerOf({}), words]
}

function work(kind: 'occupy' | 'queue'): WorldVerb {
  return (stage, [member = '', count = '1', , process]) => {
    const ref = refOf(member)
    stage.balancerOf(ref).work(kind, bare(ref), Number(count), process)
  }
}

/** `done a` ends all of it, `done a 2` two requests. */
const done: WorldVerb = (stage, [member = '', count]) => {
  const ref = refOf(member)
  const number = count === undefined ? Infinity : Number(count)
  stage.balancerOf(ref).endWork('occupy', bare(ref), number)
  if (count === undefined) stage.balancerOf(ref).endWork('queue', bare(ref))
}

/** Requests that come and go between two looks. */
const arrive: WorldVerb = (stage, [member = '', count = '1', , process]) => {
  const ref = refOf(member)
  stage.balancerOf(ref).fake.arrive(bare(ref), Number(count), process)
}

const operator: WorldVerb = (stage, [member = '', to]) => {
  const ref = refOf(member)
  stage.balancerOf(ref).fake.setBehind(bare(ref), to as AdminState | 'gone')
}

const identity: WorldVerb = (stage, [member = '', to = '']) => {
  const ref = refOf(member)
  stage.balancerOf(ref).fake.setIdentity(bare(ref), to === 'none' ? '' : to)
}

const health: WorldVerb = (stage, [member = '', to]) => {
  const ref = refOf(member)
  stage.balancerOf(ref).fake.setHealth(bare(ref), to as Health)
}

const inherits: WorldVerb = (stage, [member = '', to]) => {
  const ref = refOf(member)
  stage
    .balancerOf(ref)
    .fake.setInherited(bare(ref), to === 'nothing' ? undefined : (to as AdminState))
}

/** `shows a own unknown`: a look says so, whatever is true; `shows a truth` ends it. */
const shows: WorldVerb = (stage, [member = '', field = '', ...words]) => {
  const ref = refOf(member)
  const { shown } = stage.balancerOf(ref)
  const key = nameOf(bare(ref))
  if (field === 'truth') shown.delete(key)
  else {
    const value = valueOf(words.join(' '))
    shown.set(key, { ...shown.get(key), [field]: field === 'hints' ? [value] : value })
  }
}

/** `says p1 lived 5000`: the same of a process; `says p1 truth` ends it. */
const says: WorldVerb = (stage, words) => {
  const [balancer, [name = '', field = '', ...rest]] = named(stage, words)
  if (field === 'truth') balancer.says.delete(name)
  else balancer.says.set(name, { ...balancer.says.get(name), [field]: valueOf(rest.join(' ')) })
}

/** `server api/x of a`: the two are one machine, at one address */
const server: WorldVerb = (stage, [member = '', , other = '']) => {
  const ref = refOf(member)
  return stage.balancerOf(ref).share(bare(ref), bare(refOf(other)))
}

/** `reload`, `reload cut`, `reload east` */
const reload: WorldVerb = (stage, words) => {
  const [balancer, rest] = named(stage, words)
  balancer.reload(rest.includes('cut'))
}

/** `scope p2 unread`, `read`, `ended`, `new`, `released`, `late` (not in force), `taken` */
const scope: WorldVerb = (stage, words) => {
  const [balancer, [name = '', how]] = named(stage, words)
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
const looks: WorldVerb = (stage, words) => {
  const [balancer, [how]] = named(stage, words)
  balancer.looks = how as Balancer['looks']
}

/** `answers wait`, `answers come`, `answers lost`, `answers refused CONFLICT` */
const answers: WorldVerb = async (stage, words) => {
  const [balancer, [how, code = 'REJECTED']] = named(stage, words)
  if (how === 'come') await balancer.answerAll()
  else if (how === 'refused') balancer.answers = { how, code: code as ErrorCode }
  else balancer.answers = { how: how as 'wait' | 'lost' }
}

const WORDS = ['applied', 'refused', 'unknown']

/** The member that the first word may name, on its balancer. */
function addressed(
  stage: Stage,
  words: readonly string[],
): [Balancer, string | undefined, readonly string[]] {
  const [first, ...rest] = words
  if (first === undefined || WORDS.includes(first)) {
    // Where there are several, the one that has something waiting is named by a member.
    return [stage.balancerOf({}), undefined, words]
  }
  const ref = refOf(first)
  return [stage.balancerOf(ref), nameOf(bare(ref)), rest]
}

/** `answer`, `answer b`, `answer refused CONFLICT`, `answer b unknown` */
const answer: WorldVerb = async (stage, words) => {
  const [balancer, member, how] = addressed(stage, words)
  await balancer.answer(member, how)
}

/** The connection of the call breaks: what it asked for is not carried out, or later, by `lands`. */
const lost: WorldVerb = async (stage, words) => {
  const [balancer, member] = addressed(stage, words)
  await balancer.lose(member)
}

/** The balancer carries it out, and its answer is still under way. */
const carried: WorldVerb = async (stage, words) => {
  const [balancer, member] = addressed(stage, words)
  await balancer.carryOut(member)
}

/** What was lost is carried out after all. */
const lands: WorldVerb = async (stage, words) => {
  const [balancer, member] = addressed(stage, words)
  stage.lines.say(FIRST_PROCESS, await balancer.land(member))
}

/** What the balancer shows now: state, then each process with active+queued. */
const look: WorldVerb = async (stage, words) => {
  const all = stage.balancers.size === 0 ? [stage.balancerOf({})] : [...stage.balancers.values()]
  for (const balancer of all) {
    const prefix = balancer.name === DEFAULT_BALANCER ? '' : `${balancer.name}:`
    const wanted = words
      .filter((word) => word.startsWith(prefix))
      .map((word) => word.slice(prefix.length))
    if (words.length > 0 && wanted.length === 0) continue
    for (const line of await balancer.look(wanted)) stage.lines.say(FIRST_PROCESS, prefix + line)
  }
}

/** `door two sees p1,p2` is another provider object of the balancer; `door two of east sees p1` */
const door: WorldVerb = (stage, [name = '', ...words]) => {
  const given = options(words)
  const sees = given['sees'] === undefined ? {} : { sees: String(given['sees']).split(',') }
  stage.doors.set(name, { balancer: String(given['of'] ?? DEFAULT_BALANCER), ...sees })
}

/** Time passes. */
const advance: WorldVerb = (stage, [time = '']) => stage.settle(milliseconds(time))

/** `lease lost`: another client takes it, `lease free` */
const lease: WorldVerb = (stage, [how]) => {
  if (how === 'lost') stage.lease.seize('another client')
  else stage.lease.failNext('throw', how === 'broken' ? Infinity : 0)
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
  door,
  advance,
  lease,
}
