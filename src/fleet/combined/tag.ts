import type { MemberRef, Reading, Snapshot } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { printable, quote } from '../../provider/quote.js'
import type { DrainReport, MemberReport, Proof, Why } from '../../provider/report.js'
import type { OwnHealthCheck } from '../../core/calls/run/run-spec.js'
import type { DrainEvent } from '../../core/events.js'

/** What one balancer says, as it reads behind a combined provider: with the key of that balancer. */

export function tagRef(ref: MemberRef, key: string): MemberRef {
  return { ...ref, balancer: key }
}

/** A ref as its own balancer knows it. */
export function bareRef({ pool, member }: MemberRef): MemberRef {
  return { pool, member }
}

/** Keys, for a sentence. */
export function listKeys(keys: Iterable<string>): string {
  return [...keys].map((key) => `'${quote(key)}'`).join(', ')
}

export function tagReading<R extends Reading>(reading: R, key: string): R {
  return { ...reading, ref: tagRef(reading.ref, key) }
}

export function tagSnapshot({ readings, pools }: Snapshot, key: string): Snapshot {
  return {
    readings: readings.map((reading) => tagReading(reading, key)),
    pools: pools.map((pool) => ({ ...pool, balancer: key })),
  }
}

/** The same error, with the balancer in front of its words: it is no cause beside, or a log would have them twice. */
export function tagError(error: DrainableError, key: string): DrainableError {
  const { code, message, retryable, ref, provider, report } = error
  return new DrainableError(code, `${printable(key)}: ${message}`, {
    cause: error.cause,
    retryable,
    ...(ref === undefined ? {} : { ref: tagRef(ref, key) }),
    ...(provider === undefined ? {} : { provider }),
    ...(report === undefined ? {} : { report: tagReport(report, key) }),
  })
}

/** Balancers that a sentence names. */
const NAMED = 3

/** One error where no balancer goes on: for an address that none has, what the first three say. */
export function joinMissing(tagged: readonly DrainableError[]): DrainableError {
  const [first] = tagged
  if (first === undefined) throw new TypeError('no balancer was asked')
  const other = tagged.find(({ code }) => code !== 'NOT_FOUND')
  if (other !== undefined) return other
  if (tagged.length === 1) return first
  const more = tagged.length > NAMED ? `; and ${tagged.length - NAMED} more` : ''
  const words = tagged.slice(0, NAMED).map(({ message }) => message)
  return new DrainableError('NOT_FOUND', `on no balancer: ${words.join('; ')}${more}`, {
    cause: first.cause,
  })
}

export function tagWhy(why: Why, key: string): Why {
  return { ...why, ref: tagRef(why.ref, key), text: `${printable(key)}: ${why.text}` }
}

/** The numbers of a proof are its balancer's; its sentence names which one that is. */
function tagProof(proof: Proof, key: string): Proof {
  return { ...proof, text: `${printable(key)}: ${proof.text}` }
}

export function tagMember(member: MemberReport, key: string): MemberReport {
  const { lastReading, error, proof } = member
  return {
    ...member,
    ref: tagRef(member.ref, key),
    why: member.why.map((why) => tagWhy(why, key)),
    ...(proof === undefined ? {} : { proof: tagProof(proof, key) }),
    ...(lastReading === undefined ? {} : { lastReading: tagReading(lastReading, key) }),
    ...(error === undefined ? {} : { error: tagError(error, key) }),
  }
}

export function tagReport(report: DrainReport, key: string): DrainReport {
  const { error } = report
  return {
    ...report,
    members: report.members.map((member) => tagMember(member, key)),
    ...(error === undefined ? {} : { error: tagError(error, key) }),
  }
}

export function tagEvent(event: DrainEvent, key: string): DrainEvent {
  if (event.type === 'end') return { ...event, report: tagReport(event.report, key) }
  const tagged = { ...event, ref: tagRef(event.ref, key) }
  if (tagged.type === 'load') return { ...tagged, why: tagged.why.map((why) => tagWhy(why, key)) }
  if (tagged.type === 'idle') return { ...tagged, proof: tagProof(tagged.proof, key) }
  if (tagged.type === 'fault') return { ...tagged, error: tagError(tagged.error, key) }
  return tagged
}

/** A caller's own health check that knows members by their balancers, for those of one of them. */
export function checkAs(
  check: OwnHealthCheck | undefined,
  key: string,
): OwnHealthCheck | undefined {
  return check && ((ref, signal) => check(tagRef(ref, key), signal))
}

/** A listener that knows members by their balancers, for the events of one of them. */
export function hearAs(
  onEvent: ((event: DrainEvent) => void) | undefined,
  key: string,
): ((event: DrainEvent) => void) | undefined {
  return onEvent && ((event) => onEvent(tagEvent(event, key)))
}
