import type { LoadScope, Proof } from 'drainable'
import type { Call } from '../user/drain-call.js'
import { openedFor, type Judge } from './judge.js'
import { keyOf } from '../world/member.js'

/** Differences of clocks are computed from wall times: no exact arithmetic. */
const TOLERANCE = 1

/**
 * Idle is right when, at the last sample of its proof, no process held anything for the member, nothing
 * had come for max(settle, blind), and the sample was read by this call. What others did after that
 * sample is the only excuse: it could not be read.
 */
export function judgeIdle(
  judge: Judge,
  call: Call,
  key: string,
  proof: Proof,
  askedAt: number,
  atEnd = false,
): void {
  const { truth } = judge
  const { freshness, blind } = truth.product.capabilities
  const last = proof.samples.at(-1)
  if (last === undefined) {
    judge.fault('idle', `${key}: a proof without a sample`)
    return
  }
  const scopes = exact(judge, call, key, last.scopes)
  const quiet = Math.max(call.chain?.wish.settle ?? 0, blind)
  const named = new Set(scopes.map(({ scope }) => scope))
  for (const { scope, state, sampledAt } of scopes) {
    if (state === 'ended') continue
    if (state === 'unread') {
      judge.fault('idle', `${key}: idle on ${scope}, which is unread`)
      continue
    }
    if (sampledAt < askedAt - freshness - TOLERANCE) {
      judge.fault('idle', `${key}: idle by a sample of ${scope} from before this call`)
      continue
    }
    const fact = judge.samples.factOf(scope, sampledAt, key)
    if (fact === undefined) continue
    if (fact.total > 0) {
      judge.fault('idle', `${key}: idle with ${fact.total} (${fact.hidden} hidden) on ${scope}`)
    } else if (
      truth.product.countsArrivals &&
      sampledAt - fact.lastArrival < quiet - TOLERANCE &&
      fact.lastArrival !== -Infinity
    ) {
      const ago = Math.round(sampledAt - fact.lastArrival)
      judge.fault('idle', `${key}: idle ${ago} ms after an arrival on ${scope}, quiet is ${quiet}`)
    }
  }
  const oldest = Math.min(...scopes.map(({ sampledAt }) => sampledAt))
  for (const process of truth.alive()) {
    if (named.has(process.name) || process.bornAt >= oldest) continue
    if (process.load(key) > 0)
      judge.fault('idle', `${key}: idle without ${process.name}, which holds ${process.load(key)}`)
  }
  if (!atEnd) return
  judgeHeld(judge, call, key)
  judgeLetGo(judge, call, key)
}

/** The samples of the proof; one that went through a ticket is taken from the last look. */
function exact(
  judge: Judge,
  call: Call,
  key: string,
  scopes: readonly LoadScope[],
): readonly LoadScope[] {
  const known = scopes.every(
    ({ scope, state, sampledAt }) =>
      state !== 'read' || judge.samples.factOf(scope, sampledAt, key) !== undefined,
  )
  if (known) return scopes
  const reading = judge
    .lastLook(call.provider, key)
    ?.snapshot.readings.find(({ ref }) => keyOf(ref) === key)
  return reading?.scopes ?? scopes
}

/** At the end of a drain, and when an action begins: what the last looks showed must still be idle. */
export function judgeHeld(judge: Judge, call: Call, key: string): void {
  const looks = judge.looksAt(call.provider, key).filter(({ askedAt }) => askedAt >= call.startedAt)
  const look = looks.at(-3)
  const reading = look?.snapshot.readings.find(({ ref }) => keyOf(ref) === key)
  if (look === undefined || reading === undefined) return
  const member = judge.truth.member(key)
  if (!reading.present || !['', member.identity].includes(reading.identity)) return
  const reopened =
    reading.own === 'ready' && member.own === 'ready' && member.setter.at < look.readAt
  if (reopened) judge.fault('action', `${key}: called idle, but it is ready (${member.setter.by})`)
}

/**
 * A later `ready()` of the same process, or an undo of this very drain, has begun to open it: it is overruled. An undo of
 * another drain is no opening under this one (decisions 1 and 2 of docs/decisions/core.md), and may send nothing then: see
 * `judgeHolders`.
 */
function judgeLetGo(judge: Judge, call: Call, key: string): void {
  const opening = judge.sent.find(
    (sent) =>
      sent.process === call.process &&
      sent.key === key &&
      sent.change.kind === 'restore' &&
      openedFor(call, sent) > call.number &&
      sent.sentAt < call.releasedAt &&
      // it gives back itself what its own hold left too few for, and goes on
      !call.yields.has(key) &&
      !judge.mayBeKept(call, sent),
  )
  if (opening === undefined) return
  judge.fault('let go', `${key}: called idle although #${opening.number} of this process opens it`)
}

/** An action begins: every member it was promised is still held. */
export function judgeAction(judge: Judge, call: Call, idle: ReadonlySet<string>): void {
  for (const key of idle) {
    judgeHeld(judge, call, key)
    judgeLetGo(judge, call, key)
  }
}
