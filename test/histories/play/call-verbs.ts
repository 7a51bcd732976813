/** Commands that a process gives: the public calls of the library. */
import {
  drain,
  findOrphans,
  heldMembers,
  plan,
  ready,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  watch,
  type Drain,
  type DrainableProvider,
  type DrainEvent,
  type MemberRef,
  type Policy,
  type StepStart,
  type Target,
  type Ticket,
} from 'drainable'
import type { World } from './world.js'
import type { UserProcess } from './user-process.js'
import { nameOf, options, refOf } from './names.js'
import { sayError, sayEvent, sayLoad, sayReady, sayReport } from './say.js'
import { loopVerbs } from './loop-verbs.js'
import { rollVerbs } from './roll-verbs.js'

/** Where a command stands: the process that gives it, and all that it plays on. */
export interface Caller {
  readonly world: World
  readonly process: UserProcess
  readonly say: (line: string) => void
}

export type CallVerb = (caller: Caller, words: readonly string[]) => void | Promise<void>

/** A call as its command has it: what it is about, its name, its options. */
export interface Asked {
  readonly target: Target
  readonly name: string
  readonly provider: DrainableProvider
  /** Whether it keeps its ticket in the store, runs an action, holds the lease. */
  readonly flags: ReadonlySet<string>
  /** The options of the library. */
  readonly given: Readonly<Record<string, unknown>>
  readonly say: (line: string) => void
}

const FLAGS = ['ticket', 'action', 'lease', 'loads', 'phases', 'check', 'owns']

/** `a,b as x via two on east,west timeout 30s`, `pool web`, `at 192.0.2.1` */
export function asked({ world, process, say }: Caller, words: readonly string[]): Asked {
  const isWord = words[0] === 'pool' || words[0] === 'at'
  const what = words[isWord ? 1 : 0] ?? ''
  const found = options(words.slice(isWord ? 2 : 1), FLAGS)
  const { as, via, on, onMissing, ...others } = found
  const given = Object.fromEntries(Object.entries(others).filter(([key]) => !FLAGS.includes(key)))
  const combine = onMissing === undefined ? {} : { onMissing }
  const provider =
    on === undefined
      ? world.provider(process, via === undefined ? undefined : String(via))
      : world.combined(process, String(on).split(','), combine)
  return {
    target: targetOf(words[0] ?? '', what),
    name: String(as ?? what),
    provider,
    flags: new Set(FLAGS.filter((flag) => found[flag] === true)),
    given,
    say: as === undefined ? say : (line) => say(`[${String(as)}] ${line}`),
  }
}

function targetOf(kind: string, what: string): Target {
  if (kind === 'pool') return { pool: what }
  if (kind === 'at') return { address: what }
  const refs = what.split(',').map(refOf)
  return refs.length === 1 ? refs[0]! : refs
}

/** Told of each drain, and the same in nearly all: printed where a history asks for it. */
function isPhase({ type }: DrainEvent): boolean {
  return type === 'phase' || type === 'in-force'
}

/** Events as lines, and a cry where a member is called verified idle while it works. */
export function listener(
  { world }: Caller,
  { say, flags }: Pick<Asked, 'say' | 'flags'>,
): (event: DrainEvent) => void {
  const loads = new Map<string, string>()
  return (event) => {
    if (event.type === 'load' && flags.has('loads')) {
      const name = nameOf(event.ref)
      const line = sayLoad(event)
      if (loads.get(name) !== line) say(line)
      loads.set(name, line)
    }
    if (!isPhase(event) || flags.has('phases')) for (const line of sayEvent(event)) say(line)
    const idle = event.type === 'end' ? event.report.members : []
    for (const { ref, outcome, verifiedIdle } of idle)
      if (outcome === 'idle' && verifiedIdle && world.isBusy(ref))
        say(`FALSE IDLE of ${nameOf(ref)}`)
  }
}

/** The options of a call: the history's own, and what each call is given. */
function policyOf(caller: Caller, one: Asked, controller: AbortController): Policy {
  const { world, process } = caller
  return {
    ...one.given,
    ...(one.flags.has('ticket') ? { tickets: world.store(process), id: one.name } : {}),
    clock: process.clock,
    signal: controller.signal,
    onEvent: listener(caller, one),
  }
}

/** A call under its name, until the next of that name. */
function keep(
  { process }: Caller,
  { name, say }: Pick<Asked, 'name' | 'say'>,
  controller: AbortController,
  handle?: Drain,
): void {
  process.calls.set(name, { controller, say, ...(handle === undefined ? {} : { handle }) })
}

/** What a promise comes to, as lines. */
export function told<T>(
  promise: Promise<T>,
  say: (line: string) => void,
  word: string,
  lines: (value: T) => readonly string[],
): void {
  promise.then(
    (value) => lines(value).forEach(say),
    (error: unknown) => say(`${word} throws ${sayError(error)}`),
  )
}

/** `drain a timeout 30s ticket`, `drain a action`: the call that holds it until its action has ended */
const drainVerb: CallVerb = (caller, words) => {
  const one = asked(caller, words)
  const controller = new AbortController()
  const policy = policyOf(caller, one, controller)
  if (one.flags.has('action')) {
    const run = drain(one.provider, one.target, policy, ({ members }, { signal }) => {
      one.say(`action begins, ${members.map(({ outcome }) => outcome).join(', ')}`)
      signal.addEventListener('abort', () => one.say(`action is told ${sayError(signal.reason)}`))
      return new Promise<string>((resolve, reject) => {
        const end = (error?: Error): void =>
          error === undefined ? resolve('its value') : reject(error)
        caller.process.working.push({ end })
      })
    })
    told(run, one.say, 'drain', (value) => [`drain gives ${value}`])
    keep(caller, one, controller)
  } else {
    const handle = startDrain(one.provider, one.target, policy)
    keep(caller, one, controller, handle)
  }
}

/** The same, with nothing in its way: what is sent and said until its end is known from other histories. */
const drained: CallVerb = async (caller, words) => {
  const { lines } = caller.world
  const before = lines.take()
  await drainVerb(caller, words)
  await caller.world.pass(2_000)
  const ends = lines.take().filter((line) => /(^|[ ])(end|action begins|drain throws) /.test(line))
  lines.put([...before, ...ends])
}

/** `action done`, `action fails`: of `drain()`, of a roll's `act`, or of the check of `ready a check` */
const action: CallVerb = ({ process }, [how]) => {
  const next = process.working.shift()
  if (next === undefined) throw new Error('no action is under way')
  next.end(how === 'fails' ? new Error('the action failed') : undefined)
}

/** The handle that a history names, and what says its lines. */
function call(process: UserProcess, name = ''): { handle: Drain; say: (line: string) => void } {
  const found = process.calls.get(name)
  if (found?.handle === undefined) throw new Error(`${process.name} has no call ${name}`)
  return { handle: found.handle, say: found.say }
}

function ticketOf({ world, process }: Caller, name: string): Ticket {
  return world.tickets.read(process, name) as Ticket
}

/** `restore a`: the undo of that drain; `restore ticket a`: by its ticket, as another process does it */
const restoreVerb: CallVerb = (caller, [first = '', ...words]) => {
  const { process, world, say } = caller
  if (first !== 'ticket') {
    const { handle, say: line } = call(process, first)
    told(handle.restore(), line, 'restore', (report) => sayReport('undone', report))
    return
  }
  const [name = '', ...rest] = words
  const one = asked(caller, [name, ...rest])
  const controller = new AbortController()
  const run = restore(one.provider, ticketOf(caller, name), {
    clock: process.clock,
    signal: controller.signal,
    tickets: world.store(process),
  })
  keep(caller, { name: `restore ${name}`, say }, controller)
  told(run, say, 'restore', (report) => sayReport('undone', report))
}

/** `resume a`: goes on with a ticket */
const resume: CallVerb = (caller, [name = '', ...words]) => {
  const one = asked(caller, [name, ...words])
  const { process, world } = caller
  const controller = new AbortController()
  const handle = resumeDrain(one.provider, ticketOf(caller, name), {
    clock: process.clock,
    signal: controller.signal,
    tickets: world.store(process),
    onEvent: listener(caller, one),
  })
  keep(caller, one, controller, handle)
}

const readyVerb: CallVerb = (caller, words) => {
  const one = asked(caller, words)
  const controller = new AbortController()
  const check = ({ member }: MemberRef): Promise<undefined> => {
    one.say(`check of ${member}`)
    return new Promise((resolve, reject) => {
      const end = (error?: Error): void =>
        error === undefined ? resolve(undefined) : reject(error)
      caller.process.working.push({ end })
    })
  }
  const run = ready(one.provider, one.target, {
    ...one.given,
    ...(one.flags.has('check') ? { waitHealthy: check } : {}),
    clock: caller.process.clock,
    signal: controller.signal,
    onEvent: listener(caller, one),
  })
  keep(caller, { name: `ready ${one.name}`, say: one.say }, controller)
  told(run, one.say, 'ready', sayReady)
}

const watchVerb: CallVerb = (caller, words) => {
  const one = asked(caller, words)
  const controller = new AbortController()
  const handle = watch(one.provider, one.target, {
    ...one.given,
    clock: caller.process.clock,
    signal: controller.signal,
    onEvent: listener(caller, one),
  })
  keep(caller, one, controller, handle)
}

/** One step: the first of its name begins, each further one goes on with the ticket of the last. */
const step: CallVerb = async (caller, words) => {
  await makeStep(caller, words)
}

async function makeStep(caller: Caller, words: readonly string[]): Promise<number | undefined> {
  const { world, process } = caller
  const one = asked(caller, words)
  const { target, name, provider, given, say } = one
  const kept = world.tickets.read(process, name) as Ticket | undefined
  const from: Ticket | StepStart = kept ?? { target, policy: { ...given, id: name } }
  const made = stepDrain(provider, from, { clock: process.clock, onEvent: listener(caller, one) })
  const { ticket, phase, outcome, why, againIn } = await world.clock.runUntil(made, 60_000)
  world.tickets.keep(process, name, ticket)
  const reasons = [...new Set(why.map(({ code }) => code))].join(', ')
  const again = againIn === 0 ? 'again at once' : 'again later'
  const words2 = outcome === undefined ? `${phase}, ${again}` : `${phase}, ends ${outcome}`
  say(`step ${name} ${words2}${reasons === '' ? '' : ` (${reasons})`}`)
  return outcome === undefined ? againIn : undefined
}

/** Steps until the outcome, each when the one before said. */
const steps: CallVerb = async (caller, words) => {
  for (let made = 0; made < 100; made += 1) {
    const wait = await makeStep(caller, words)
    if (wait === undefined) return
    await caller.world.clock.advance(wait)
  }
}

/** The caller's signal fires. */
const abort: CallVerb = ({ process }, words) => {
  const found = process.calls.get(words.join(' '))
  if (found === undefined) throw new Error(`${process.name} has no call ${words.join(' ')}`)
  found.controller.abort(new Error('the caller gave up'))
}

const release: CallVerb = ({ process }, [name = '']) => {
  const { handle, say } = call(process, name)
  told(handle.release(), say, 'release', () => ['released'])
}

const why: CallVerb = ({ process }, [name = '']) => {
  const { handle, say } = call(process, name)
  for (const { ref, code, text, hint } of handle.why()) {
    say(`${nameOf(ref)} ${code}: ${text}`)
    if (hint !== undefined) say(`  ${hint}`)
  }
}

/** The report as it is now; with the words of its errors. */
const report: CallVerb = ({ process }, [name = '']) => {
  const { handle, say } = call(process, name)
  const now = handle.report()
  for (const line of sayReport('report', now)) say(line)
  for (const { error } of now.members) if (error !== undefined) say(error.message)
}

const close: CallVerb = async ({ world, process }, [view]) => {
  await world.provider(process, view).close()
}

/** The process is dead: what it sent may still be carried out, and its tickets stay. */
const kill: CallVerb = ({ world, process }) => {
  process.die()
  for (const balancer of world.balancers.values()) balancer.loseCaller(process.name)
}

/** `store fails`, `store works`; `store untold`: what it is written is not printed */
const store: CallVerb = ({ world }, [how]) => {
  if (how === 'untold') world.tickets.told = false
  else world.tickets.fails = how === 'fails'
}

const damage: CallVerb = ({ world, process }, [name = '', field = 'members']) =>
  world.tickets.damage(process, name, field)

const tickets: CallVerb = ({ world, say }) =>
  say(`tickets ${world.tickets.ids().join(', ') || 'none'}`)

const orphans: CallVerb = async ({ world, process, say }) => {
  const found = findOrphans(world.store(process), world.provider(process), { clock: process.clock })
  for (const { ticket, owner, members } of await world.clock.runUntil(found)) {
    const list = members.map(({ ref, own, owes }) => `${nameOf(ref)} ${own}${owes ? ' owes' : ''}`)
    say(`orphan ${ticket.id}, its process is ${owner.state}: ${list.join(', ')}`)
  }
}

const held: CallVerb = async ({ world, process, say }) => {
  const refs = await world.clock.runUntil(heldMembers(world.store(process)))
  say(`held ${refs.map(nameOf).join(', ') || 'none'}`)
}

/** `plan a keepReady 2`: what a drain would do, with no change */
const planVerb: CallVerb = async (caller, words) => {
  const one = asked(caller, words)
  const made = plan(one.provider, one.target, { ...one.given, clock: caller.process.clock })
  const { text, refused } = await caller.world.clock.runUntil(made)
  for (const line of text.split('\n')) one.say(line)
  for (const error of refused) one.say(`would be refused, ${sayError(error)}`)
}

/** Every command of a process. */
export const CALL_VERBS: Readonly<Record<string, CallVerb>> = {
  drain: drainVerb,
  drained,
  action,
  restore: restoreVerb,
  resume,
  ready: readyVerb,
  watch: watchVerb,
  step,
  steps,
  abort,
  release,
  why,
  report,
  close,
  kill,
  store,
  damage,
  tickets,
  orphans,
  held,
  plan: planVerb,
  ...rollVerbs,
  ...loopVerbs,
}
