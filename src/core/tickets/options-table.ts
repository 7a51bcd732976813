import * as z from 'zod/mini'
import { once } from '../../provider/options.js'
import { durationOption, whole } from '../../provider/option-schemas.js'
import type { PolicyData } from './shape.js'

/** One option of a drain that is plain data. */
interface Row<Given extends z.ZodMiniType, Kept extends z.ZodMiniType> {
  /** As a caller writes it, with its default. */
  readonly given: Given
  /** As it stands in a ticket; null for none. */
  readonly kept: Kept
  /** Whether what is kept is a number of milliseconds. */
  readonly isTime: boolean
}

function row<G extends z.ZodMiniType, K extends z.ZodMiniType>(
  given: G,
  kept: K,
  isTime = false,
): Row<G, K> {
  return { given, kept, isTime }
}

/** One of some words. */
function word<const Words extends readonly string[]>(words: Words, byDefault: Words[number]) {
  const schema = z.enum(words)
  return row(z._default(schema, byDefault), schema)
}

const time = once(() => durationOption())
const endlessTime = once(() => durationOption({ infinite: true }))
/** Milliseconds in a ticket: at most ten years, as a caller may give. */
export const ms = once(() => z.number().check(z.minimum(0), z.maximum(10 * 365 * 24 * 3_600_000)))

/** A drain takes a number of members; only a roll takes a percentage. */
const WHOLE_NUMBER = 'expected a whole number of members from 0, such as 2'

/** The options of a drain that are plain data, in the order in which a wrong one is told. */
const table = once(() => ({
  timeout: row(z._default(endlessTime(), 30_000), z.nullable(ms()), true),
  onTimeout: word(['fail', 'terminate', 'proceed', 'remove'], 'fail'),
  hold: word(['drain', 'maint'], 'drain'),
  escalateAfter: row(z.exactOptional(time()), z.nullable(ms()), true),
  settle: row(z._default(time(), 1_000), ms(), true),
  until: word(['idle', 'removed'], 'idle'),
  seal: row(z.exactOptional(z.boolean()), z.nullable(z.boolean())),
  keepReady: row(z._default(whole(0, Infinity, WHOLE_NUMBER), 1), whole(0)),
  onMinimum: word(['fail', 'wait'], 'fail'),
  onOverrule: word(['reapply', 'fail'], 'fail'),
  onAbort: word(['leave', 'restore'], 'leave'),
  onUnreachable: word(['wait', 'fail'], 'fail'),
  ifUnsupported: word(['fail', 'proceed'], 'fail'),
}))

type Table = ReturnType<typeof table>
type Column<Side extends 'given' | 'kept'> = { [Name in keyof Table]: Table[Name][Side] }

const column = <Side extends 'given' | 'kept'>(side: Side): Column<Side> =>
  Object.fromEntries(
    Object.entries(table()).map(([name, each]) => [name, each[side]]),
  ) as Column<Side>

/** What a caller may give. */
export const givenShape = once(() => column('given'))
/** What a ticket keeps of it. Tickets from before `onUnreachable` have none. */
export const keptShape = once(() => ({
  ...column('kept'),
  onUnreachable: table().onUnreachable.given,
}))

/** Given options as a ticket keeps them. */
export function toKept(given: z.output<z.ZodMiniObject<Column<'given'>>>): PolicyData {
  const kept = Object.keys(table()).map((name) => {
    const value = given[name as keyof Table]
    return [name, value === undefined || value === Infinity ? null : value]
  })
  return Object.fromEntries(kept) as PolicyData
}

/** Kept options as a caller would write them. */
export function toGiven({
  timeout,
  ...kept
}: PolicyData): z.input<z.ZodMiniObject<Column<'given'>>> {
  const rows: Record<string, Row<z.ZodMiniType, z.ZodMiniType>> = table()
  const given = Object.entries(kept).flatMap(([name, value]): [string, unknown][] =>
    value === null ? [] : [[name, rows[name]?.isTime === true ? `${value}ms` : value]],
  )
  const written: Record<string, unknown> = Object.fromEntries(given)
  return { ...written, timeout: timeout === null ? Infinity : `${timeout}ms` }
}
