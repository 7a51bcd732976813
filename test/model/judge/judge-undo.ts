import type { AdminState, DrainReport } from 'drainable'
import type { Call, Chain } from '../user/drain-call.js'
import type { Delivery, ModelProvider } from '../world/model-provider.js'
import type { Judge } from './judge.js'
import { describeChange } from './judge.js'
import {
  baseWasAnnounced,
  mayBeLate,
  mayHaveSent,
  raiseIntended,
  savedMember,
  wasAnnounced,
} from './saved-ticket.js'
import type { SentChange } from './sent-change.js'
import { keyOf, RANK, type Member } from '../world/member.js'
import type { UserProcess } from '../user/user-process.js'

/** An undo that has settled: of one drain (`restore`), or of any client (`ready`). */
export interface Undo {
  readonly chain: Chain | undefined
  readonly process: UserProcess
  readonly provider: ModelProvider
  readonly startedAt: number
  readonly settledAt: number
  readonly keys: readonly string[]
  /** Members it says are as they were. */
  readonly restored: ReadonlySet<string>
  readonly report?: DrainReport
  /** Members that other drains of the process held: what may still come is theirs to wait for. */
  left?: ReadonlySet<string>
  /** Nothing went wrong and no other client changed it: it had every reason to succeed. */
  readonly calm: boolean
}

/** Undos that said `restored`: nothing of what they undid may come back. */
export class Undos {
  readonly #settled: Undo[] = []

  add(undo: Undo): void {
    this.#settled.push(undo)
  }

  /** Whether a state file has brought back what an undo had opened: no drain looks after it any more. */
  revived(chain: Chain, { key, setter, reloadedAt }: Member): boolean {
    return this.#settled.some(
      (undo) =>
        undo.chain === chain &&
        undo.restored.has(key) &&
        setter.at < undo.settledAt &&
        undo.settledAt <= reloadedAt,
    )
  }

  /** A hold that was sent before an undo said `restored`, and is carried out after it. */
  afterwards(judge: Judge, sent: SentChange, member: Member): void {
    if (sent.change.kind !== 'hold') return
    const undo = this.#settled.find(
      ({ chain, process, settledAt, startedAt, restored, left }) =>
        restored.has(member.key) &&
        left?.has(member.key) !== true &&
        sent.sentAt <= startedAt &&
        judge.now >= settledAt &&
        // when the call of another process that lives ends, no ticket tells
        (process === sent.process || sent.answeredAt <= startedAt || !sent.process.alive) &&
        !setByOthers(sent, member, settledAt, process) &&
        (chain === undefined
          ? process === sent.process
          : sent.authors.size === 1 &&
            [chain, ...judge.ancestors(chain, process, member.key)].some(({ id }) =>
              sent.authors.has(id),
            )),
    )
    if (undo === undefined) return
    const by = undo.chain === undefined ? 'ready()' : `the undo of ${undo.chain.id}`
    judge.fault(
      'undo too early',
      `${describeChange(sent.change)} is carried out after ${by} said done`,
    )
  }
}

/**
 * Whether another client set the very state that a change asks for, after the reading that it was decided on: whoever
 * looks takes that for its effect, and these cannot be told apart.
 *
 * @param observer - who looks: what its own process does it knows of
 */
export function setByOthers(
  { change, knownUntil, process, authors }: SentChange,
  member: Member,
  by: number,
  observer: UserProcess = process,
): boolean {
  if (!('to' in change)) return false
  return member.sets.some(
    ({ to, setter }) =>
      to === change.to &&
      setter.at >= knownUntil &&
      setter.at <= by &&
      (setter.by === 'operator' || isElse(setter.change)),
  )
  function isElse(other: SentChange | undefined): boolean {
    if (other === undefined || other.process === observer) return false
    return observer === process || ![...other.authors].some((author) => authors.has(author))
  }
}

/** What an undo says when it has settled. */
export function judgeUndone(judge: Judge, undo: Undo): void {
  const { chain, process } = undo
  judge.truth.figures.add(chain === undefined ? 'ready() done' : 'undos done')
  for (const key of undo.keys) {
    const member = judge.truth.member(key)
    // also where what a reload has done since can't be known
    const isLeft = chain !== undefined && leaveToOthers(judge, undo, chain, key)
    if (isLeft) {
      undo.left = new Set([...(undo.left ?? []), key])
      continue
    }
    const wanted = judge.calls.some(
      (call) =>
        call.live &&
        call.startedAt >= undo.startedAt &&
        call.keys.has(key) &&
        call.verb !== 'watch' &&
        call.verb !== 'undo' &&
        call.verb !== 'ready',
    )
    // what a reload brought back after the last look can't be known
    const seen = judge.lastLook(undo.provider, key)?.readAt ?? -Infinity
    if (wanted || !member.present || member.reloadedAt > seen) continue
    if (chain === undefined) {
      const { change } = member.setter
      const ours = change?.process === process && change.change.kind === 'hold'
      if (
        undo.restored.has(key) &&
        ours &&
        change.sentAt < undo.startedAt &&
        member.own !== 'ready' &&
        !setByOthers(change, member, undo.settledAt, process)
      )
        judge.fault('ready', `${key}: ready() is done, and it is held (${member.own}) by us`)
      continue
    }
    if (!judge.heldBy(chain, member)) continue
    const known = undo.report?.members.find(({ ref }) => keyOf(ref) === key)
    if (maybeFoundSo(judge, chain, member, known?.wasAdmin)) continue
    if (undo.restored.has(key))
      judge.fault(
        'undo',
        `${key}: the undo of ${chain.id} says done, and it is held (${member.own})`,
      )
    else if (undo.calm && !excused(chain, key, judge))
      judge.fault('undo left', `${key}: ${chain.id} was not undone, and nothing was in the way`)
  }
}

/**
 * Whether another drain of the process has held the member during an undo (decision 2): then the undo is over, the member
 * stays as it is, and what was changed is for the last of them to undo.
 */
function leaveToOthers(
  judge: Judge,
  { process, startedAt, report }: Undo,
  chain: Chain,
  key: string,
): boolean {
  // after a release it is left alone, and said: what it had changed stays in its own ticket
  const isLeftAlone = report?.members.some(
    ({ ref, outcome }) => keyOf(ref) === key && outcome === 'overruled',
  )
  const keepers = judge.keepersBeside(chain, process, key, startedAt)
  const left = isLeftAlone ? [] : [chain, ...judge.ancestors(chain, process, key)]
  for (const { heirOf } of keepers) heirOf.set(key, new Set([...(heirOf.get(key) ?? []), ...left]))
  return keepers.length > 0
}

/**
 * Whether a drain was shown the member lower in the very process that had taken its hold, and a later one has that hold from a
 * state file: others had taken it back, and what is there since is not its own (decision 4).
 */
export function cameBack(judge: Judge, { id }: Chain, member: Member): boolean {
  const { key, own, setter, reloadedAt } = member
  const isOfThen = ({ snapshot }: Delivery): boolean =>
    snapshot.readings.some(
      ({ ref, scopes }) =>
        keyOf(ref) === key &&
        scopes.every(({ scope }) =>
          judge.truth.processes.some(({ name, bornAt }) => name === scope && bornAt <= setter.at),
        ),
    )
  return judge.calls.some(
    ({ chain, provider, closedAt }) =>
      chain?.id === id &&
      judge.looksAt(provider, key).some((look) => {
        const shown = shownState(look, key)
        const isBetween = look.askedAt > setter.at && look.readAt < reloadedAt
        return (
          isBetween &&
          look.at <= closedAt &&
          isOfThen(look) &&
          shown !== undefined &&
          isLower(own)(shown)
        )
      }),
  )
}

/** {@link leaveToOthers} of a call whose ticket is dropped, or that has begun its undo. */
export function isLeftToOthers(judge: Judge, call: Call, key: string): boolean {
  const { chain, process } = call
  if (chain === undefined) return false
  const since = call.verb === 'undo' ? call.startedAt : Math.min(call.undoesAt, judge.now)
  return judge.keepersBeside(chain, process, key, since).length > 0
}

/**
 * Whether a drain went back to a state that it had found, and that was there by a hold of its own without
 * an answer, or by others: an operator, a hold of another drain, or a `ready()` on its way out of maint. These can't be
 * told apart.
 */
export function maybeFoundSo(
  judge: Judge,
  { id }: Chain,
  member: Member,
  wasAdmin: AdminState | 'unknown' | undefined = savedMember(judge, id, member.key)?.found?.own,
): boolean {
  const unsure = judge.sent.some(
    (sent) =>
      sent.key === member.key &&
      // of several that can have sent it, it may have been another one
      (sent.authors.size === 1 && sent.authors.has(id) ? sent.answer !== 'told' : true) &&
      leadsTo(sent, member.own),
  )
  const byOperator = member.sets.some(
    ({ to, setter }) => to === member.own && setter.by === 'operator',
  )
  return (unsure || byOperator) && wasAdmin === member.own
}

/**
 * What was sent and whose answer is not in the ticket has no known owner, and a doubt is left alone (decision 3). Drains that
 * shared a process, the one that undoes it too, had one ledger, and its doubts (decision 7).
 */
function excused(chain: Chain, key: string, judge: Judge): boolean {
  const lost = judge.sent.some(
    ({ key: of, authors, answer }) => of === key && authors.has(chain.id) && answer !== 'told',
  )
  const mine = judge.calls.filter((call) => call.chain === chain)
  const beside = new Set(
    judge.calls.flatMap((call) =>
      call.chain !== undefined && mine.some(({ process }) => process === call.process)
        ? [call.chain.id]
        : [],
    ),
  )
  const isUnsure = [...beside].some((id) => {
    const saved = savedMember(judge, id, key)
    return saved !== undefined && mayHaveSent(saved).length + saved.doubted.length > 0
  })
  // one of two members that have had the name: a record is of one of them, and the other's drain ends as gone, said
  const { identities } = judge.truth.member(key)
  const isOfTwo = beside.size > 1 && identities.length > 1
  return lost || isUnsure || isOfTwo || savedMember(judge, chain.id, key) === undefined
}

/**
 * Changes of the member before this one that its sender knows of: its own process's, its drains', those of drains whose
 * tickets this process has used before, and those of drains that shared a process with its own: they had one ledger, and that
 * is in the tickets of all (decisions 2 and 7). What these never got an answer to is left to the next run.
 */
function sentBefore(judge: Judge, sent: SentChange): readonly SentChange[] {
  const { key, number, authors, process } = sent
  const theirs = judge.calls.filter(({ chain }) => chain !== undefined && authors.has(chain.id))
  const processes = new Set([process, ...theirs.map((call) => call.process)])
  const used = judge.calls.filter((call) => processes.has(call.process) && call.keys.has(key))
  const known = new Set([
    ...authors,
    ...undosOf(judge, sent).flatMap(({ chain }) => chain?.id ?? []),
    ...used.flatMap(({ chain }) => chain?.id ?? []),
  ])
  return judge.sent.filter(
    (other) =>
      other.key === key &&
      other.number < number &&
      (other.process.alive || [...other.authors].some((author) => known.has(author))),
  )
}

function leadsTo({ change }: SentChange, state: AdminState): boolean {
  return 'to' in change && change.to === state
}

/**
 * Whether it cannot be told if a change brought about what others set at that moment. A hold that was decided
 * before that moment, and found it done, may have been carried out before its own repeat.
 */
function isUnsure(other: SentChange, setAt: number): boolean {
  if (other.answer !== 'told' || maybeHalfDone(other, setAt)) return true
  return other.effect === 'unchanged' && other.knownUntil <= setAt
}

/**
 * Whether an operator set a member, before this hold, to what the hold's sender had set it to before, or
 * may have, with no look in between that showed it otherwise.
 */
export function looksLikeOurs(judge: Judge, sent: SentChange, member: Member): boolean {
  if (member.setter.by !== 'operator') return false
  const looks = judge.looksAt(sent.provider, member.key)
  return (
    maybeSetBefore(judge, sent, member, looks, (own) => own !== member.own) ||
    (undosOf(judge, sent).length > 0 &&
      maybeSetBefore(judge, sent, member, looks, isLower(member.own)))
  )
}

/**
 * Undos of the member that were under way when its sender began, those that an abort has begun too: a drain takes
 * over what they had to undo, and its ticket carries that into other processes.
 */
function undosOf(judge: Judge, { key, authors, candidates }: SentChange): readonly Call[] {
  const heirs = new Set([
    ...candidates,
    ...judge.calls.filter(({ chain }) => chain !== undefined && authors.has(chain.id)),
  ])
  return judge.calls.filter(
    ({ verb, number, undoes, closedAt, process, keys }) =>
      keys.has(key) &&
      [...heirs].some(
        (heir) =>
          heir.process === process &&
          (verb === 'undo' ? number : undoes) < heir.number &&
          heir.startedAt <= closedAt,
      ),
  )
}

/**
 * Whether the sender of a change had set a member before to the state that others have set it to since, or
 * may have, with none of these looks in between that tells them apart.
 */
function maybeSetBefore(
  judge: Judge,
  sent: SentChange,
  member: Member,
  looks: readonly Delivery[],
  tells: (own: AdminState) => boolean,
): boolean {
  const { setter, own, key, reloadedAt } = member
  const answers = new Set(
    judge.sent.filter((other) => other.key === key).map(({ answeredAt }) => answeredAt),
  )
  const toldApart = (since: number): boolean =>
    looks.some((look) => {
      // one that was asked for in the moment of an answer is of before or after it
      if (answers.has(look.askedAt)) return false
      const shown = shownState(look, key)
      // what a process that began since says may be from a file that is older than this look
      const stands = look.askedAt > since && look.readAt < setter.at && look.readAt >= reloadedAt
      return stands && shown !== undefined && tells(shown)
    })
  return sentBefore(judge, sent).some(
    (other) =>
      leadsTo(other, own) &&
      (isUnsure(other, setter.at) || (other.effect === 'applied' && !toldApart(other.answeredAt))),
  )
}

/**
 * Looks that a drain was given in one process: a ticket of it that is used elsewhere may be older. So may one
 * that is used here again after its undo: neither it nor what is saved from it on knows what that undo saw.
 */
function looksOf(
  judge: Judge,
  chain: string,
  process: UserProcess,
  { key }: Member,
): readonly Delivery[] {
  const calls = judge.calls.filter(
    (call) => call.chain?.id === chain && call.process === process && call.keys.has(key),
  )
  const isKnown = (call: Call, at: number): boolean =>
    calls.every(({ number, ticketAt }) => number <= call.number || at <= (ticketAt ?? Infinity))
  return calls.flatMap((call) =>
    judge
      .looksAt(call.provider, key)
      .filter(
        ({ askedAt, at }) => askedAt >= call.startedAt && at <= call.closedAt && isKnown(call, at),
      )
      // one that another drain asked for, with this member beside its own for the floor, this drain was not given
      .filter(({ snapshot }) => snapshot.readings.every(({ ref }) => call.keys.has(keyOf(ref)))),
  )
}

/** Whether a drain was shown that others had taken back what it had set: the same again is theirs. */
function isLower(own: AdminState): (shown: AdminState) => boolean {
  return (shown) => RANK[shown] < RANK[own]
}

/**
 * Refused, and no look of its sender between that and the moment in which another client set its state, be it
 * before the refusal or after it: a refused change may be half done. A look that was asked for in the moment
 * of the answer is of before or after it.
 */
function maybeHalfDone(sent: SentChange, setAt: number): boolean {
  const { effect, answeredAt, provider, key, knownUntil } = sent
  if (effect !== undefined || answeredAt === Infinity || setAt < knownUntil) return false
  return !provider.deliveries.some(
    (look) =>
      look.askedAt > answeredAt && look.readAt < setAt && shownState(look, key) !== undefined,
  )
}

/** The own state that a look shows of a member; undefined where it shows none. */
function shownState({ snapshot }: Delivery, key: string): AdminState | undefined {
  const reading = snapshot.readings.find(({ ref }) => keyOf(ref) === key)
  return reading?.present !== true || reading.own === 'unknown' ? undefined : reading.own
}

/** A change is about to be carried out: an undo opens only what is its own. */
export function judgeExecution(judge: Judge, sent: SentChange, member: Member): void {
  const { change } = sent
  if (change.kind !== 'restore' || sent.byReady) return
  if (!member.present || change.identity !== member.identity) return
  if (member.own !== change.expect || RANK[change.to] >= RANK[member.own]) return
  const { setter } = member
  const chain = sent.authors.size === 1 ? [...sent.authors][0] : undefined
  if (chain === undefined) return
  // a drain that took over an undo has in its ticket what that one knew
  const known = [chain, ...undosOf(judge, sent).flatMap((undo) => undo.chain?.id ?? [])]
  if (setter.by === 'operator') {
    // what is set after a change was sent its sender could not know: it was late, or has yet to be read
    if (member.reloadedAt >= setter.at || setter.at >= sent.sentAt) return
    const looks = looksOf(judge, chain, sent.process, member)
    if (
      !maybeSetBefore(judge, sent, member, looks, isLower(member.own)) &&
      !raiseIntended(judge, chain, member) &&
      !known.some((id) => wasAnnounced(judge, id, member)) &&
      !mayBeLate(judge, sent, chain, member)
    )
      judge.fault('not ours', `${describeChange(change)}, which an operator set to ${member.own}`)
    return
  }
  const mine = sentBefore(judge, sent).filter(({ authors }) => authors.has(chain))
  const base = member.bases.get(chain)
  const mayHaveSet = (other: SentChange): boolean =>
    base !== undefined &&
    base !== 'unclear' &&
    leadsTo(other, base) &&
    member.sets.some(({ to, setter: by }) => to === base && isUnsure(other, by.at))
  const unsure =
    mine.some((other) => other.answer !== 'told' || mayHaveSet(other)) ||
    known.length > 1 || // back to what it was before both
    mine.some((other) => openedSince(judge, other)) || // or to what \`ready()\` had made of it
    isFromBefore(judge, sent, member, base) ||
    mayBeOfAnother(judge, sent, base) ||
    known.some((id) => baseWasAnnounced(judge, id, member, base))
  if (base !== undefined && base !== 'unclear' && RANK[change.to] < RANK[base] && !unsure)
    judge.fault('not ours', `${describeChange(change)}, which was ${base} before ${chain}`)
}

/** Whether a `ready()` of the process that sent a change has opened the member since: nobody goes back to what was before that. */
function openedSince(judge: Judge, { key, number, process }: SentChange): boolean {
  return judge.sent.some(
    (other) =>
      other.byReady && other.key === key && other.process === process && other.number > number,
  )
}

/**
 * Whether this process has undone another ticket of the member that may have led to this state: it goes back to what was before
 * both. An operator's drain between two tickets that is the same is opened: the known price of one record for a member.
 */
function mayBeOfAnother(
  judge: Judge,
  { key, process, authors }: SentChange,
  base: AdminState | 'unclear' | undefined,
): boolean {
  return judge.calls.some(({ verb, chain, process: of, keys, live }) => {
    if (verb !== 'undo' || live || of !== process || !keys.has(key)) return false
    if (chain === undefined || authors.has(chain.id)) return false
    const saved = savedMember(judge, chain.id, key)
    return (
      saved !== undefined &&
      mayHaveSent(saved).some(({ kind, to }) => kind === 'hold' && to === base)
    )
  })
}

/**
 * Whether an operator had lowered a hold of this process, and the balancer's process was replaced before anybody looked: what the
 * new one shows was forgotten, for all that a look can tell.
 */
function isFromBefore(
  judge: Judge,
  sent: SentChange,
  { key, sets, reloadedAt }: Member,
  base: AdminState | 'unclear' | undefined,
): boolean {
  const lowered = sets.findLast(({ to, setter }) => to === base && setter.by === 'operator')
  if (lowered === undefined || lowered.setter.at >= reloadedAt) return false
  const { at } = lowered.setter
  const held = sentBefore(judge, sent).some(
    ({ change, answeredAt }) => change.kind === 'hold' && answeredAt <= at,
  )
  const isSeen = judge
    .looksAt(sent.provider, key)
    .some(({ readAt }) => readAt > at && readAt < reloadedAt)
  return held && !isSeen
}
