import { dueIn } from '../../../../../src/core/machine/due.js'
import type { Change } from 'drainable/provider'
import { failure, WEB1, type FreeInput } from '../../member-run.js'
import { take, type Case, type Node, type Step } from '../node.js'
import { carryOut, look, type Seen, type Truth } from '../truth.js'

/** So many looks end every run in a calm world. */
const MOST_LOOKS = 400
/** So many looks in a row that are due by a moment in the past decide nothing any more. */
const MOST_DUE = 40
/** Between two looks where nothing is due, in milliseconds. */
const PAUSE = 1_000
/** The same where something is due already. */
const SOON = 20

const NO_ANSWER = failure('CALL_TIMEOUT')
const REFUSED = failure('CONFLICT', true)

/** Judges one step. */
export type Judge = (before: Node, step: Step, one: Case) => readonly string[]

/**
 * What is wrong with how a run goes on from here, where nothing happens any more: work ends, everything can be
 * read, changes get their answers, and no client changes anything.
 */
export function wrongInCalm(node: Node, one: Case, judge: Judge): readonly string[] {
  const play = new Play({ ...node, asked: null, truth: calm(node.truth, node) }, one, judge)
  if (isOver(play.node)) return []
  play.answer()
  for (let i = 0; i < MOST_LOOKS && !isOver(play.node); i += 1) {
    const wait = play.wait()
    if (wait === 'for ever') return ['a moment in the past is due for ever']
    play.look(wait)
    play.answer()
    if (play.faults.length > 0) return play.faults.map((text) => `in a calm world: ${text}`)
  }
  if (!isOver(play.node)) return ['a run does not end in a calm world']
  return endsWell(play.node) ? [] : ['a drain that nothing hinders does not end as idle']
}

/** What is due for ever where the world stands still as it is. */
export function wrongInStandstill(node: Node, one: Case): readonly string[] {
  const play = new Play({ ...node, asked: null }, one, () => [])
  for (let i = 0; i < 3 * MOST_DUE; i += 1) {
    const { ending, hold } = play.node.machine
    if (ending.ended !== null || hold.pending !== null) return []
    const wait = play.wait()
    if (wait === 'for ever') return ['a moment in the past is due for ever where nothing moves']
    play.look(wait)
  }
  return []
}

/** How a run goes on, input by input. */
class Play {
  node: Node
  readonly faults: string[] = []
  readonly #one: Case
  readonly #judge: Judge
  #due = 0

  constructor(node: Node, one: Case, judge: Judge) {
    this.node = node
    this.#one = one
    this.#judge = judge
  }

  /** Milliseconds to the next look, as the runner has it; `for ever`: what is due is in the past, look for look. */
  wait(): number | 'for ever' {
    const { machine, now } = this.node
    const wait = dueIn(machine, this.#one.policy, now)
    this.#due = wait === 0 ? this.#due + 1 : 0
    if (this.#due > MOST_DUE) return 'for ever'
    return wait === null ? PAUSE : wait === 0 ? SOON : Math.min(wait, PAUSE)
  }

  look(pause: number): void {
    const { world } = this.#one
    const { truth, machine } = this.node
    const now = this.node.now + pause
    const reading = look(truth, now, world)
    const ended = world.listsAll ? { ended: 'unlisted' as const } : {}
    const floor = machine.hold.floor === 'granted' ? { floor: null } : {}
    const input = { type: 'reading' as const, reading, askedAt: now, took: 0, ...floor, ...ended }
    const shown = reading.scopes.map(({ scope }) => scope)
    const all = [...new Set([...this.node.shown, ...shown])].sort()
    this.#put(input, { now, shown: all }, { reading, askedAt: now, truth })
  }

  /** Everything that waits for an answer gets one. */
  answer(): void {
    for (const { change } of this.node.truth.stragglers) {
      const result = { ref: WEB1, status: 'unknown', error: NO_ANSWER } as const
      this.#put({ type: 'result', change, result })
    }
    this.node = { ...this.node, truth: { ...this.node.truth, stragglers: [] } }
    const { goal } = this.node.machine
    if (goal.kind === 'open' && goal.check === 'running')
      this.#put({ type: 'checked', error: null })
    const { pending } = this.node.machine.hold
    if (pending !== null) this.#answerTo(pending.change)
  }

  #answerTo(change: Change): void {
    const { truth, now } = this.node
    const done = truth.landed ? truth : carryOut(truth, change)
    if (done === null) {
      const result = { ref: WEB1, status: 'rejected', error: REFUSED } as const
      this.#put({ type: 'result', change, result }, { now: now + 1 })
      return
    }
    const status = done === truth && !truth.landed ? 'unchanged' : 'applied'
    const news = { now: now + 1, truth: { ...done, landed: false } }
    this.#put({ type: 'result', change, result: { ref: WEB1, status } }, news)
  }

  #put(input: FreeInput, news: Partial<Node> = {}, seen: Seen | null = null): void {
    const before = this.node
    const made = take({ ...before, ...news }, input, this.#one.policy, seen)
    this.faults.push(...this.#judge(before, { ...made, name: 'calm' }, this.#one))
    this.node = made.node
  }
}

/** Whether a drain without a deadline that no client, refusal or floor has hindered ended as it should. */
function endsWell({ machine, truth, runs }: Node): boolean {
  const { goal, deadline, hold, ending } = machine
  if (goal.kind !== 'drain' || deadline !== null || runs > 1) return true
  if (truth.operator || hold.refusal !== null || hold.atMinimum) return true
  if (ending.terminated > 0) return true
  return ['idle', 'removed'].includes(ending.ended?.outcome ?? '')
}

function isOver({ machine, truth }: Node): boolean {
  if (machine.ending.ended !== null) return true
  if (machine.goal.kind !== 'watch') return false
  return machine.phase === 'idle' || (truth.own === 'ready' && machine.phase === 'active')
}

function calm(truth: Truth, { machine }: Node): Truth {
  const { pending } = machine.hold
  return {
    ...truth,
    contradicts: false,
    inherited: null,
    damagedAt: null,
    cache: null,
    health: truth.health === 'unchecked' ? 'unchecked' : 'up',
    landed: pending !== null && truth.landed,
    stragglers: truth.stragglers.filter(({ underWay }) => underWay === true),
    processes: truth.processes.map((one) => ({
      ...one,
      work: [],
      queued: 0,
      readable: true,
      listed: true,
      life: one.old && one.life === 'alive' ? 'ended' : one.life,
    })),
  }
}
