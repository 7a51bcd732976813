/** Commands that a process gives: the public calls of the library. */
import {
  drain,
  findOrphans,
  heldMembers,
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
import type { Stage } from './stage.js'
import type { UserProcess } from './user-process.js'
import { nameOf, options, refOf } from './names.js'
import { sayError, sayEvent, sayLoad, sayReady, sayReport } from './say.js'
import { rollVerbs } from './roll-verbs.js'

/** Where a command stands: the process that gives it, and all that it plays on. */
export interface Scene {
  readonly stage: Stage
  readonly process: UserProcess
  readonly say: (line: string) => void
}

export type CallVerb = (scene: Scene, words: readonly string[]) => void | Promise<void>

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

const FLAGS = ['ticket', 'action', 'lease', 'loads', 'phases', 'check']

/** `a,b as x via two on east,west timeout 30s`, `pool web`, `at 192.0.2.1` */
export function asked({ stage, process, say }: Scene, words: readonly string[]): Asked {
  const isWord = words[0] === 'pool' || words[0] === 'at'
  const what = words[isWord ? 1 : 0] ?? ''
  const found = options(words.slice(isWord ? 2 : 1), FLAGS)
  const { as, via, on, onUnreachable, onMissing, ...others } = found
  const given = Object.fromEntries(Object.entries(others).filter(([key]) => !FLAGS.includes(key)))
  const combine = {
    ...(onUnreachable === undefined ? {} : { onUnreachable }),
    ...(onMissing === undefined ? {} : { onMissing }),
  }
  const provider =
    on === undefined
      ? stage.provider(process, via === undefined ? undefined : String(via))
      : stage.combined(process, String(on).split(','), combine)
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
  { stage }: Scene,
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
      if (outcome === 'idle' && verifiedIdle && stage.isBusy(ref))
        say(`FALSE IDLE of ${nameOf(ref)}`)
  }
}

/** The options of a call: the history's own, and what each call is given. */
function policyOf(scene: Scene, one: Asked, controller: AbortController): Policy {
  const { stage, process } = scene
  return {
    ...one.given,
    ...(one.flags.has('ticket') ? { tickets: stage.store(process), id: one.name } : {}),
    clock: process.clock,
    signal: controller.signal,
    onEvent: listener(scene, one),
  }
}

/** A call under its name, until the next of that name. */
function keep(
  { process }: Scene,
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
const drainVerb: CallVerb = (scene, words) => {
  const one = asked(scene, words)
  const controller = new AbortController()
  const policy = policyOf(scene, one, controller)
  if (one.flags.has('action')) {
    const run = drain(one.provider, one.target, policy, ({ members }, { signal }) => {
      one.say(`action begins, ${members.map(({ outcome }) => outcome).join(', ')}`)
      signal.addEventListener('abort', () => one.say(`action is told ${sayError(signal.reason)}`))
      return new Promise<string>((resolve, reject) => {
        const end = (error?: Error): void =>
          error === undefined ? resolve('its value') : reject(error)
        scene.process.working.push({ end })
      })
    })
    told(run, one.say, 'drain', (value) => [`drain gives ${value}`])
    keep(scene, one, controller)
  } else {
    const handle = startDrain(one.provider, one.target, policy)
    keep(scene, one, controller, handle)
  }
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

function ticketOf({ stage, process }: Scene, name: string): Ticket {
  return stage.shelf.read(process, name) as Ticket
}

/** `restore a`: the undo of that drain; `restore ticket a`: by its ticket, as another process does it */
const restoreVerb: CallVerb = (scene, [first = '', ...words]) => {
  const { process, stage, say } = scene
  if (first !== 'ticket') {
    const { handle, say: line } = call(process, first)
    told(handle.restore(), line, 'restore', (report) => sayReport('undone', report))
    return
  }
  const [name = '', ...rest] = words
  const one = asked(scene, [name, ...rest])
  const controller = new AbortController()
  const run = restore(one.provider, ticketOf(scene, name), {
    clock: process.clock,
    signal: controller.signal,
    tickets: stage.store(process),
  })
  keep(scene, { name: `restore ${name}`, say }, controller)
  told(run, say, 'restore', (report) => sayReport('undone', report))
}

/** `resume a`: goes on with a ticket */
const resume: CallVerb = (scene, [name = '', ...words]) => {
  const one = asked(scene, [name, ...words])
  const { process, stage } = scene
  const controller = new AbortController()
  const handle = resumeDrain(one.provider, ticketOf(scene, name), {
    clock: process.clock,
    signal: controller.signal,
    tickets: stage.store(process),
    onEvent: listener(scene, one),
  })
  keep(scene, one, controller, handle)
}

const readyVerb: CallVerb = (scene, words) => {
  const one = asked(scene, words)
  const controller = new AbortController()
  const check = ({ member }: MemberRef): Promise<undefined> => {
    one.say(`check of ${member}`)
    return new Promise((resolve, reject) => {
      const end = (error?: Error): void =>
        error === undefined ? resolve(undefined) : reject(error)
      scene.process.working.push({ end })
    })
  }
  const run = ready(one.provider, one.target, {
    ...one.given,
    ...(one.flags.has('check') ? { waitHealthy: check } : {}),
    clock: scene.process.clock,
    signal: controller.signal,
    onEvent: listener(scene, one),
  })
  keep(scene, { name: `ready ${one.name}`, say: one.say }, controller)
  told(run, one.say, 'ready', sayReady)
}

const watchVerb: CallVerb = (scene, words) => {
  const one = asked(scene, words)
  const controller = new AbortController()
  const handle = watch(one.provider, one.target, {
    ...one.given,
    clock: scene.process.clock,
    signal: controller.signal,
    onEvent: listener(scene, one),
  })
  keep(scene, one, controller, handle)
}

/** One step: the first of its name begins, each further one goes on with the ticket of the last. */
const step: CallVerb = async (scene, words) => {
  await makeStep(scene, words)
}

async function makeStep(scene: Scene, words: readonly string[]): Promise<number | undefined> {
  const { stage, process } = scene
  const one = asked(scene, words)
  const { target, name, provider, given, say } = one
  const kept = stage.shelf.read(process, name) as Ticket | undefined
  const from: Ticket | StepStart = kept ?? { target, policy: { ...given, id: name } }
  const made = stepDrain(provider, from, { clock: process.clock, onEvent: listener(scene, one) })
  const { ticket, phase, outcome, why, againIn } = await stage.clock.runUntil(made, 60_000)
  stage.shelf.keep(process, name, ticket)
  const reasons = [...new Set(why.map(({ code }) => code))].join(', ')
  const again = againIn === 0 ? 'again at once' : 'again later'
  const words2 = outcome === undefined ? `${phase}, ${again}` : `${phase}, ends ${outcome}`
  say(`step ${name} ${words2}${reasons === '' ? '' : ` (${reasons})`}`)
  return outcome === undefined ? againIn : undefined
}

/** Steps until the outcome, each when the one before said. */
const steps: CallVerb = async (scene, words) => {
  for (let made = 0; made < 100; made += 1) {
    const wait = await makeStep(scene, words)
    if (wait === undefined) return
    await scene.stage.clock.advance(wait)
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

const close: CallVerb = async ({ stage, process }, [door]) => {
  await stage.provider(process, door).close()
}

/** The process is dead: what it sent may still be carried out, and its tickets stay. */
const kill: CallVerb = ({ stage, process }) => {
  process.die()
  for (const balancer of stage.balancers.values()) balancer.loseCaller(process.name)
}

/** `store fails`, `store works` */
const store: CallVerb = ({ stage }, [how]) => {
  stage.shelf.fails = how === 'fails'
}

const damage: CallVerb = ({ stage, process }, [name = '', field = 'members']) =>
  stage.shelf.damage(process, name, field)

const tickets: CallVerb = ({ stage, say }) =>
  say(`tickets ${stage.shelf.ids().join(', ') || 'none'}`)

const orphans: CallVerb = async ({ stage, process, say }) => {
  const found = findOrphans(stage.store(process), stage.provider(process), { clock: process.clock })
  for (const { ticket, owner, members } of await stage.clock.runUntil(found)) {
    const list = members.map(({ ref, own, owes }) => `${nameOf(ref)} ${own}${owes ? ' owes' : ''}`)
    say(`orphan ${ticket.id}, its process is ${owner.state}: ${list.join(', ')}`)
  }
}

const held: CallVerb = async ({ stage, process, say }) => {
  const refs = await stage.clock.runUntil(heldMembers(stage.store(process)))
  say(`held ${refs.map(nameOf).join(', ') || 'none'}`)
}

/** Every command of a process. */
export const CALL_VERBS: Readonly<Record<string, CallVerb>> = {
  drain: drainVerb,
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
  ...rollVerbs,
}
