import { atLeast, formatRef, isSameIdentity } from '../provider/member-ref.js'
import { formatSocket } from '../provider/address.js'
import type { AdminState, Change } from '../provider/contract.js'
import type { DrainableError } from '../provider/error.js'
import type { CarefulAdapter, ChangeOf, ChangeOutcome, Sight } from './change.js'
import { refusal, type Subject } from './errors.js'

/** What a judge asks of an adapter: of each kind only whether it is a text, which says why it can't be done. */
export interface Rules<F extends Sight> extends Pick<
  CarefulAdapter<F, unknown>,
  'provider' | 'maint' | 'absent' | 'isSo'
> {
  readonly terminate?: unknown
  readonly remove?: unknown
  readonly add?: unknown
}

/** The refusal of what the product can not do: told without a look. */
export function judgeKind<F extends Sight>(
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
export function judge<F extends Sight>(
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
  found: Sight | undefined,
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

function doubtOf({ says, doubt }: Sight): string {
  const said = says === undefined ? '' : ` (${says})`
  return `is in a state that is not known${said}${doubt === undefined ? '' : `: ${doubt}`}`
}

function cannot<F extends Sight>(change: Change, rules: Rules<F>): string | undefined {
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

function subjectOf<F extends Sight>({ ref }: Change, { provider }: Rules<F>): Subject {
  return { provider, ref }
}

function rejected(error: DrainableError): ChangeOutcome {
  return { status: 'rejected', error }
}
