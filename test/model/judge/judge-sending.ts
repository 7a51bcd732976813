import type { Call } from '../user/drain-call.js'
import { isDrain, turnOfOpener } from '../user/drain-call.js'
import type { Judge } from './judge.js'
import { describeChange } from './judge.js'
import type { ModelProvider } from '../world/model-provider.js'
import type { SentChange } from './sent-change.js'
import { keyOf, RANK } from '../world/member.js'
import type { UserProcess } from '../user/user-process.js'

/** What must hold when a change leaves a user process. */
export function judgeSending(
  judge: Judge,
  sent: SentChange,
  calls: readonly Call[],
  provider: ModelProvider,
): void {
  const own = calls.filter((call) => call.provider === provider)
  const needed = sent.change.kind === 'restore' ? own : own.filter(isDrain)
  if (needed.length === 0) {
    judge.fault(
      'stray',
      `${describeChange(sent.change)}: no call of this process is under way for it`,
    )
    return
  }
  judgeOneAtATime(judge, sent, own)
  judgeHolders(judge, sent, calls)
  judgeIdentity(judge, sent, own)
  judgeWord(judge, sent, own, provider)
  judgeFloor(judge, sent, own, provider)
}

/**
 * An undo, and a hold that is given back for the floor, send nothing while another drain of the process holds the member:
 * only `ready()` opens it (decisions 1 and 2).
 */
function judgeHolders(judge: Judge, sent: SentChange, calls: readonly Call[]): void {
  const { change, key, process } = sent
  if (change.kind !== 'restore' || sent.byReady) return
  const openers = calls.filter(
    (call) => turnOfOpener(call) !== Infinity || call.yields.has(key) || call.refused.has(key),
  )
  const holder = calls.find((call) => {
    const { until, sure = false } = call.kept.get(key) ?? {}
    return (
      isDrain(call) &&
      // a step lets go before it ends: what it has under way is waited for
      call.verb !== 'stepDrain' &&
      call.process === process &&
      sure &&
      until === Infinity &&
      call.releasedAt === Infinity &&
      call.chain !== undefined &&
      !openers.some(({ chain }) => chain === call.chain)
    )
  })
  if (holder !== undefined)
    judge.fault('under a hold', `${describeChange(change)} while ${holder.chain?.id} holds it`)
}

/** How long a drain that is undone waits for its own change under way, in milliseconds. */
const UNDO_WAITS = 5_000

/** A change that goes out together with another drain's goes on when its own drain gives it up. */
function hasGivenUp({ now }: Judge, { undoesAt }: Call, sentAt: number): boolean {
  return undoesAt > sentAt && now >= undoesAt + UNDO_WAITS
}

function judgeOneAtATime(judge: Judge, sent: SentChange, own: readonly Call[]): void {
  const open = judge.sent.filter(
    ({ key, answer, candidates, sentAt }) =>
      key === sent.key &&
      answer === 'open' &&
      // at its deadline a drain gives up what it has under way
      candidates.every(
        (call) => own.includes(call) && (call.endedAt <= sentAt || call.endedAt > judge.now),
      ) &&
      !(
        sent.change.kind === 'restore' && candidates.some((call) => hasGivenUp(judge, call, sentAt))
      ),
  )
  if (open.length >= own.length)
    judge.fault('one at a time', `${describeChange(sent.change)} while #${open[0]?.number} is open`)
}

/** Every change says whom it means, and means the one its call began with. */
function judgeIdentity(judge: Judge, { change, key }: SentChange, own: readonly Call[]): void {
  if (change.kind === 'add') return
  const member = judge.truth.member(key)
  if (change.identity === undefined) {
    // What began while its name did not resolve can't say it.
    if (member.namelessUntil !== undefined) return
    judge.fault('identity', `${describeChange(change)} without an identity`)
    return
  }
  for (const call of own) {
    if (call.identities.has(key)) continue
    const since = member.identities.filter(
      ({ from }, i) => (member.identities[i + 1]?.from ?? Infinity) >= call.startedAt && from >= 0,
    )
    call.identities.set(key, new Set(since.map(({ identity }) => identity)))
  }
  // a drain that goes on from a ticket has the identity of the ticket
  const resumed = own.some(({ chain }) => chain?.saved?.includes(JSON.stringify(change.identity)))
  if (!resumed && !own.some((call) => call.identities.get(key)?.has(change.identity ?? '')))
    judge.fault('identity', `${describeChange(change)} of ${change.identity}, which is another one`)
}

/** What cuts work needs the caller's word, and a member is removed only once it is idle. */
function judgeWord(
  judge: Judge,
  { change, key }: SentChange,
  own: readonly Call[],
  provider: ModelProvider,
): void {
  const drains = own.filter(isDrain)
  const policies = drains.flatMap(({ chain }) => chain?.wish.policy ?? [])
  // a deadline in a ticket is wall time, and another machine has another one
  const isDue = ({ verb, startedAt, chain }: Call): boolean =>
    (verb !== 'drain' && verb !== 'startDrain') ||
    judge.now >= startedAt + (chain?.wish.timeout ?? Infinity)
  const mayCut =
    policies.some(({ onTimeout }) => onTimeout === 'terminate') ||
    drains.some((call) => call.chain?.wish.policy.onTimeout === 'remove' && isDue(call))
  if (change.kind === 'terminate' && !mayCut)
    judge.fault('word', `${describeChange(change)} without onTimeout: 'terminate'`)
  if (change.kind === 'remove') {
    if (!policies.some(({ until }) => until === 'removed'))
      judge.fault('word', `${describeChange(change)} without until: 'removed'`)
    if (holdsKnownWork(judge, key, drains, provider) && !mayCut)
      judge.fault('remove', `${describeChange(change)} over work that the last look could show`)
  }
  if (change.kind !== 'hold' || change.to !== 'maint') return
  const { maint } = judge.truth.product.capabilities
  if (maint === 'gentle' || mayCut) return
  if (!policies.some(({ seal }) => seal === true)) {
    judge.fault('word', `${describeChange(change)} where maint is ${maint}, without a word for it`)
  } else if (holdsKnownWork(judge, key, drains, provider)) {
    judge.fault('seal cuts', `${describeChange(change)} over work that the last look could show`)
  }
}

/**
 * Whether it holds work that had begun when it was last looked at: what comes after that can't be known. A drain is given
 * no look that another one asked for, without all of its members.
 */
function holdsKnownWork(
  judge: Judge,
  key: string,
  drains: readonly Call[],
  provider: ModelProvider,
): boolean {
  const looks = judge.looksAt(provider, key)
  const works = judge.truth
    .alive()
    .flatMap((process) => [...process.works].filter((work) => work.key === key))
  if (looks.length === 0) return true
  return drains.every(({ keys }) => {
    const look = looks.findLast(({ snapshot }) => {
      const read = new Set(snapshot.readings.map(({ ref }) => keyOf(ref)))
      return [...keys].every((one) => read.has(one))
    })
    const known = (look?.readAt ?? -Infinity) - judge.truth.product.capabilities.freshness
    return works.some(({ since }) => since < known)
  })
}

/**
 * An undo that is under way wishes nothing down any more, and no other one of that name was asked for. What others have opened since
 * asks the floor for its place again.
 */
function stillWished(judge: Judge, key: string, process: UserProcess): boolean {
  const last = judge.sent.findLast((other) => other.key === key && other.process === process)
  const { identities, own, setter } = judge.truth.member(key)
  const since = identities.at(-1)?.from ?? 0
  const byOthers = setter.by === 'operator' || (setter.change && setter.change.process !== process)
  if (byOthers === true && RANK[own] < RANK.drain && setter.at >= (last?.sentAt ?? 0)) return false
  return last === undefined || (last.change.kind !== 'restore' && last.sentAt >= since)
}

/**
 * Whether a member is wished down for certain: by a call that has said that it is draining, or by every
 * call that can have sent a hold of it. Of several that can have, only one need have. One that was refused
 * for good goes on while others hold the member, and releases it when they do.
 */
function isSure(judge: Judge, live: readonly Call[], key: string): boolean {
  // one that was released holds nothing any more, also while its last call goes on; between two steps no run wishes anything
  const wishes = (call: Call): boolean =>
    live.includes(call) &&
    call.verb !== 'stepDrain' &&
    call.wishesDown.has(key) &&
    !call.refused.has(key) &&
    call.releasedAt === Infinity
  return (
    live.some((call) => wishes(call) && call.holds.has(key)) ||
    judge.sent.some(({ key: of, change, candidates, number }) => {
      const drains = candidates.filter(isDrain)
      const since = (call: Call): boolean => number > (call.letGo.get(key) ?? 0)
      return (
        of === key &&
        change.kind === 'hold' &&
        drains.length > 0 &&
        drains.every((call) => wishes(call) && since(call))
      )
    })
  )
}

/** Whether the sender could know that a member serves: every look it can have decided on showed it so. */
function knownToServe(judge: Judge, provider: ModelProvider, key: string): boolean {
  const looks = judge.looksAt(provider, key)
  return looks
    .filter(({ at }, i) => at >= judge.now - KEEPING || i === looks.length - 1)
    .every(({ snapshot }) =>
      snapshot.readings.some(
        (reading) => keyOf(reading.ref) === key && reading.present && reading.serves,
      ),
    )
}

/** How long a ticket may take to be kept, between the floor's word and the sending, in milliseconds. */
const KEEPING = 7

/**
 * What is to be kept by holds of other members that went out while this one's ticket was kept, and that
 * take a place: the floor may have been asked in any order.
 */
function askedTogether(
  judge: Judge,
  { key, change, process, number }: SentChange,
): readonly number[] {
  return judge.sent
    .filter(
      (other) =>
        other.process === process &&
        other.number < number &&
        other.key !== key &&
        other.change.kind === 'hold' &&
        other.change.ref.pool === change.ref.pool &&
        other.sentAt >= judge.now - KEEPING,
    )
    .filter((other) => {
      const member = judge.truth.member(other.key)
      return judge.truth.serves(member) || member.servedAt >= judge.now - KEEPING
    })
    .map(({ candidates }) => {
      const drains = candidates.filter(isDrain)
      return Math.min(...drains.map(({ chain }) => chain?.wish.policy.keepReady ?? 1))
    })
}

/**
 * The first hold of a member leaves the pool its floor: members that this process wishes down never
 * count, whatever they are; others count if they served at the last moment that can be known.
 */
function judgeFloor(
  judge: Judge,
  sent: SentChange,
  own: readonly Call[],
  provider: ModelProvider,
): void {
  const { change, key, process } = sent
  if (change.kind !== 'hold') return
  const drains = own.filter(isDrain)
  const live = judge.calls.filter((call) => call.live && call.process === process)
  const maybe = live.flatMap(({ wishesDown }) => [...wishesDown])
  const wished = new Set(
    maybe.filter((wish) => stillWished(judge, wish, process) && isSure(judge, live, wish)),
  )
  // a drain that goes on from its ticket wishes it down already
  const goesOn = drains.some(({ chain }) => chain?.held.has(key))
  const first = !(maybe.includes(key) && stillWished(judge, key, process)) && !goesOn
  for (const call of drains) {
    call.wishesDown.add(key)
    call.chain?.held.add(key)
  }
  const member = judge.truth.member(key)
  if (!first || !member.present || RANK[member.own] >= RANK.drain) return
  const keep = Math.min(...drains.map(({ chain }) => chain?.wish.policy.keepReady ?? 1))
  const known = judge.knownUntil(provider, key)
  const left = judge.truth
    .inPool(change.ref.pool)
    .filter((other) => other !== member && !wished.has(other.key))
    .filter((other) => judge.truth.serves(other) || other.servedAt >= known)
  if (!judge.truth.serves(member) || left.length >= keep) return
  if (!knownToServe(judge, provider, key)) return
  // whoever keeps most has asked first, as far as can be told: is there a place for each in turn?
  const keeps = [keep, ...askedTogether(judge, sent)].sort((a, b) => b - a)
  const inTurn = keeps.every((of, i) => left.length + keeps.length - (i + 1) >= of)
  if (!inTurn)
    judge.fault(
      'floor',
      `${describeChange(change)} leaves ${left.length} of ${keep} serving (wished down: ${[...wished].join(' ')})`,
    )
}
