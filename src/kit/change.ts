import { formatSocket } from '../provider/address.js'
import type { AdminState, CallContext, Change, ChangeResult } from '../provider/contract.js'
import type { DrainableError } from '../provider/error.js'
import { atLeast, formatRef, isSameIdentity } from '../provider/member-ref.js'
import { refusal, type Subject } from './errors.js'

/** A change of one kind. */
export type ChangeOf<K extends Change['kind']> = Extract<Change, { kind: K }>

/** A member that was found, as far as the rules need it. A `PresentReading` is one. */
export interface SeenMember {
  /** As `PresentReading.identity`: a member with another identity is another member, even under the same name. */
  readonly identity: string
  /** The member's own state. An `unknown` state is not overwritten. */
  readonly own: AdminState | 'unknown'
  /** The product's own word for that state, for messages. */
  readonly says?: string
  /** Why the own state is unknown, for messages. */
  readonly doubt?: string
  /** Whether the doubt can pass by itself, so that the refusal is retryable. Default: an operator has to act. */
  readonly passing?: boolean
  readonly address?: string
  readonly port?: number
  /** The name of the written object, if members with different names can be one object. Default: the ref. */
  readonly object?: string
}

/** The result of one change: a `ChangeResult` without its ref. */
export type ChangeOutcome = ChangeResult extends infer R
  ? R extends ChangeResult
    ? Omit<R, 'ref'>
    : never
  : never

/** A begun change that {@link CarefulAdapter.finish} ends together with others. */
export interface Later<L> {
  readonly later: L
  /**
   * Whether anything of it has been sent yet: if not, it is refused when the call is given up. @default true
   */
  readonly sent?: () => boolean
}

/** A begun change, as passed to `finish`. */
export interface Begun<F extends SeenMember, L> {
  readonly change: Change
  /** The member as found before the change; undefined for an `add`. */
  readonly found: F | undefined
  readonly later: L
}

/**
 * A function that sends one change that the rules allow. Returning nothing means `applied`. A thrown refusal
 * (`REJECTED`, `CONFLICT`, `FORBIDDEN` and so on) means `rejected`, any other error `unknown`.
 */
export type Send<K extends Change['kind'], F, L> = (
  change: ChangeOf<K>,
  found: F,
  ctx: CallContext,
  // eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a client that returns nothing has done it
) => ChangeOutcome | Later<L> | Promise<ChangeOutcome | Later<L> | void>

/** The reason why a product can't make a change: the text of the refusal, with the nearest alternative. */
export type Cannot = string

/** The adapter's part of {@link carefulApply}: how to look at members, and what to send for each kind of change. */
export interface CarefulAdapter<F extends SeenMember, L = never> {
  /** The name of the provider, for errors. */
  readonly provider: string
  /**
   * Looks at all members concerned at once. Called before anything is sent, and again if a sent change has made the
   * last look stale: for a second change of one member, a lost answer, or `again`.
   *
   * @returns a function that returns the member of a change as known now, undefined if it is not there; it throws if
   * it can't be told which member is meant
   */
  look(changes: readonly Change[], ctx: CallContext): Promise<(change: Change) => F | undefined>
  /** Raises to `drain` or `maint`; called only for a known lower state. */
  hold: Send<'hold', F, L>
  /** Restores a state; called only if the expected state was found, and it is not the wanted one. */
  restore: Send<'restore', F, L>
  terminate: Send<'terminate', F, L> | Cannot
  remove: Send<'remove', F, L> | Cannot
  /** Adds a member; called only if there is none of that name. */
  add: Send<'add', undefined, L> | Cannot
  /** Why the product has no maint, and what to do instead. */
  readonly maint?: Cannot
  /** The text of NOT_FOUND. Default: that the member is not there. */
  absent?(change: Change): string
  /**
   * Whether a hold or a restore is already in place. Default: decided by the own state alone.
   *
   * @param same - the decision by the own state alone
   */
  isSo?(change: ChangeOf<'hold' | 'restore'>, found: F, same: boolean): boolean
  /**
   * Ends the begun changes (`{ later }`) together. `again`: another client was faster, so the member is read and
   * judged again.
   */
  finish?(
    begun: readonly Begun<F, L>[],
    ctx: CallContext,
  ): AsyncIterable<readonly [begun: Begun<F, L>, outcome: ChangeOutcome | 'again']>
}

/** What a judge asks of an adapter: of each kind only whether it is a text, which says why it can't be done. */
export interface Rules<F extends SeenMember> extends Pick<
  CarefulAdapter<F, unknown>,
  'provider' | 'maint' | 'absent' | 'isSo'
> {
  readonly terminate?: unknown
  readonly remove?: unknown
  readonly add?: unknown
}

/** The refusal of what the product can not do: told without a look. */
export function judgeKind<F extends SeenMember>(
  change: Change,
  rules: Rules<F>,
): ChangeOutcome | undefined {
  const why = cannot(change, rules)
  if (why === undefined) return undefined
  const words = `${formatRef(change.ref)}: ${change.kind} is not done: ${why}`
  return rejected(refusal('UNSUPPORTED', words, subjectOf(change, rules)))
}

/**
 * What stands against a change, or that it is so already; undefined where it is to be sent.
 *
 * | found | the change | comes to |
 * |---|---|---|
 * | not there | `add` | sent |
 * | not there | any other | `NOT_FOUND` |
 * | there, at the address asked for | `add` | `unchanged` |
 * | there, elsewhere | `add` | `CONFLICT` |
 * | another identity | any other | `CONFLICT` |
 * | own state unknown | `hold`, `restore` | `CONFLICT` |
 * | as high, or higher | `hold` | `unchanged` |
 * | as asked for | `restore` | `unchanged` |
 * | another state than expected | `restore` | `CONFLICT` |
 *
 * The conflicts are decided anew from a new reading, so they are not retryable; but a doubt can pass.
 */
export function judge<F extends SeenMember>(
  change: Change,
  found: F | undefined,
  rules: Rules<F>,
): ChangeOutcome | undefined {
  const subject = subjectOf(change, rules)
  if (change.kind === 'add') return judgeAdd(change, found, subject)
  const name = formatRef(change.ref)
  if (found === undefined) {
    const words = rules.absent?.(change) ?? `${name} is not there, check the names`
    return rejected(refusal('NOT_FOUND', words, subject))
  }
  const { identity = found.identity } = change
  if (!isSameIdentity(identity, found.identity)) {
    const words = `is another member now (${found.identity}, expected ${identity})`
    return conflict(words, subject)
  }
  if (change.kind !== 'hold' && change.kind !== 'restore') return undefined
  const { own } = found
  const same = own !== 'unknown' && isThere(change, own)
  if (rules.isSo?.(change, found, same) ?? same) return { status: 'unchanged' }
  if (own === 'unknown') return conflict(doubtOf(found), subject, found.passing === true)
  if (change.kind === 'restore' && own !== change.expect) {
    const said = found.says === undefined ? '' : ` (${found.says})`
    const words = `is '${own}'${said}, expected '${change.expect}': it was changed meanwhile`
    return conflict(words, subject)
  }
  return undefined
}

function judgeAdd(
  { address, port }: ChangeOf<'add'>,
  found: SeenMember | undefined,
  subject: Subject,
): ChangeOutcome | undefined {
  if (found === undefined) return undefined
  const known = found.address !== undefined && found.port !== undefined
  const at = known ? formatSocket(found.address, found.port) : found.identity
  if (at === formatSocket(address, port)) return { status: 'unchanged' }
  return conflict(`is there already, at ${at}`, subject)
}

function isThere(change: ChangeOf<'hold' | 'restore'>, own: AdminState): boolean {
  return change.kind === 'hold' ? atLeast(own, change.to) : own === change.to
}

/** One wording for each conflict: what is so, and that nothing came of the change. */
function conflict(what: string, subject: Subject, retryable = false): ChangeOutcome {
  const words = `${formatRef(subject.ref)} ${what}; nothing was sent`
  return rejected(refusal('CONFLICT', words, subject, retryable))
}

function doubtOf({ says, doubt }: SeenMember): string {
  const said = says === undefined ? '' : ` (${says})`
  return `is in a state that is not known${said}${doubt === undefined ? '' : `: ${doubt}`}`
}

function cannot<F extends SeenMember>(change: Change, rules: Rules<F>): string | undefined {
  switch (change.kind) {
    case 'hold':
      return change.to === 'maint' ? rules.maint : undefined
    case 'restore':
      return change.to === 'maint' || change.expect === 'maint' ? rules.maint : undefined
    default: {
      const way = rules[change.kind]
      return typeof way === 'string' ? way : undefined
    }
  }
}

function subjectOf<F extends SeenMember>({ ref }: Change, { provider }: Rules<F>): Subject {
  return { provider, ref }
}

function rejected(error: DrainableError): ChangeOutcome {
  return { status: 'rejected', error }
}
