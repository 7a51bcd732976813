import type { LoadScope, MemberRef, PresentReading } from '../../../provider/contract.js'
import { parentLoad, parentScope } from '../../../kit/envoy/parent.js'
import type { Proxy, Sample } from '../session/proxy.js'

const UNASKED = 'the process before a hot restart, which only its child reports on'

/** One look at a listed Envoy: what it showed, or what kept it from being read. */
export interface Look {
  readonly ref: MemberRef
  readonly proxy: Proxy
  readonly sample: Sample | undefined
  readonly error: Error | undefined
}

/** Whether it would get work from what is in front. */
export function serves({ sample, proxy }: Look): boolean {
  if (sample?.info.state !== 'LIVE' || sample.isClosed || proxy.isDrained) return false
  return sample.listeners.total > 0
}

/** A listed Envoy as a member. @param now - by the caller's clock */
export function toReading(look: Look, now: number): PresentReading {
  const { ref, proxy, sample } = look
  const { host } = proxy.address
  const known = sample ?? proxy.last
  const id = known?.info.nodeId ?? ''
  const base = {
    ref,
    present: true as const,
    identity: id === '' ? proxy.address.member : `${proxy.address.member} ${id}`,
    ...(host === undefined ? {} : { address: host }),
    health: 'unchecked' as const,
  }
  if (sample === undefined) {
    const scope = unread(ref.member, known?.incarnation ?? '', now, look.error?.message)
    return { ...base, own: 'unknown', serves: false, scopes: [scope, ...parentOf(look, now)] }
  }
  const { state } = sample.info
  const unverified = whyUnverified(sample)
  const own = state === 'DRAINING' ? 'drain' : state === 'LIVE' ? 'ready' : 'unknown'
  return {
    ...base,
    own,
    serves: serves(look),
    scopes: [toScope(look, sample, now), ...parentOf(look, now)],
    ...(isLeft(sample) ? { sealed: true } : {}),
    ...(unverified === undefined ? {} : { unverified }),
    hints: [...(sample.counts?.hints ?? [])],
  }
}

/** What may be left although nothing is in flight. */
function whyUnverified({ counts }: Sample): string | undefined {
  if (counts === undefined || counts.http3 === 0) return undefined
  return `${counts.http3} connections of HTTP/3 are open, and what of their last responses is not sent yet is in no statistic: it is gone with the process; wait until their clients have closed them`
}

/** Whether nobody is connected, and nobody can connect. */
function isLeft({ isClosed, counts }: Sample): boolean {
  if (!isClosed || counts === undefined) return false
  return counts.active + counts.queued + counts.pooled === 0
}

function toScope({ ref, proxy }: Look, sample: Sample, now: number): LoadScope {
  const { counts, incarnation, sampledAt } = sample
  if (counts === undefined) return unread(ref.member, incarnation, sampledAt, sample.note)
  const unnoticed = proxy.unnoticed(sample, now)
  return {
    scope: ref.member,
    incarnation,
    state: 'read',
    sampledAt,
    active: counts.active,
    queued: counts.queued,
    pooled: counts.pooled,
    arrivals: counts.arrivals,
    ...(unnoticed === undefined ? {} : { inForce: false, note: unnoticed }),
  }
}

/** The process before a hot restart, by its child. While that can't be asked, its parent is not known either. */
function parentOf({ ref, proxy, sample }: Look, now: number): LoadScope[] {
  const { previous, sampledAt = now } = sample ?? { previous: proxy.last?.previous }
  if (previous === undefined || previous.isEnded) return []
  const base = { scope: parentScope(ref.member), incarnation: previous.incarnation, sampledAt }
  if (sample === undefined) return [parentLoad({ ...base, note: UNASKED }, undefined, true)]
  const { connections, isClosed, note } = previous
  return [parentLoad({ ...base, note }, connections, !isClosed)]
}

function unread(scope: string, incarnation: string, at: number, note?: string): LoadScope {
  return {
    scope,
    incarnation,
    state: 'unread',
    sampledAt: at,
    active: 0,
    queued: 0,
    ...(note === undefined ? {} : { note }),
  }
}
