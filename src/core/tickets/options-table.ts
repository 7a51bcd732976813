import * as z from 'zod'
import { once } from '../../provider/once.js'
import { durationOption } from '../../provider/option-schemas.js'
import type { PolicyData } from './shape.js'

/** One option of a drain that is plain data. */
interface Row<Given extends z.ZodType, Kept extends z.ZodType> {
  /** As a caller writes it, with its default. */
  readonly given: Given
  /** As it stands in a ticket; null for none. */
  readonly kept: Kept
  /** Whether what is kept is a number of milliseconds. */
  readonly isTime: boolean
}

function row<G extends z.ZodType, K extends z.ZodType>(
  given: G,
  kept: K,
  isTime = false,
): Row<G, K> {
  return { given, kept, isTime }
}

/** One of some words. */
function word<E extends z.ZodEnum>(words: E, byDefault: z.output<E>): Row<z.ZodDefault<E>, E> {
  return row(words.default(byDefault as z.core.util.NoUndefined<z.output<E>>), words)
}

const time = once(() => durationOption({ bareSeconds: 'refuse' }))
const endlessTime = once(() => durationOption({ bareSeconds: 'refuse', infinite: true }))
/** Milliseconds in a ticket: at most ten years, as a caller may give. */
export const ms = once(() =>
  z
    .number()
    .min(0)
    .max(10 * 365 * 24 * 3_600_000),
)

/** A drain takes a number of members; only a roll takes a percentage. */
const WHOLE_NUMBER = 'expected a whole number of members from 0, such as 2'

/** The options of a drain that are plain data, in the order in which a wrong one is told. */
const table = once(() => ({
  timeout: row(endlessTime().default(30_000), ms().nullable(), true),
  onTimeout: word(z.enum(['fail', 'terminate', 'proceed', 'remove']), 'fail'),
  hold: word(z.enum(['drain', 'maint']), 'drain'),
  escalateAfter: row(time().exactOptional(), ms().nullable(), true),
  settle: row(time().default(1_000), ms(), true),
  until: word(z.enum(['idle', 'removed']), 'idle'),
  seal: row(z.boolean().exactOptional(), z.boolean().nullable()),
  keepReady: row(
    z.number(WHOLE_NUMBER).int(WHOLE_NUMBER).min(0, WHOLE_NUMBER).default(1),
    z.int().min(0),
  ),
  onMinimum: word(z.enum(['fail', 'wait']), 'fail'),
  onOverrule: word(z.enum(['reapply', 'fail']), 'fail'),
  onAbort: word(z.enum(['leave', 'restore']), 'leave'),
  onUnreachable: word(z.enum(['wait', 'fail']), 'fail'),
  ifUnsupported: word(z.enum(['fail', 'proceed']), 'fail'),
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
export function toKept(given: z.output<z.ZodObject<Column<'given'>>>): PolicyData {
  const kept = Object.keys(table()).map((name) => {
    const value = given[name as keyof Table]
    return [name, value === undefined || value === Infinity ? null : value]
  })
  return Object.fromEntries(kept) as PolicyData
}

/** Kept options as a caller would write them. */
export function toGiven({ timeout, ...kept }: PolicyData): z.input<z.ZodObject<Column<'given'>>> {
  const rows: Record<string, Row<z.ZodType, z.ZodType>> = table()
  const given = Object.entries(kept).flatMap(([name, value]): [string, unknown][] =>
    value === null ? [] : [[name, rows[name]?.isTime === true ? `${value}ms` : value]],
  )
  const written: Record<string, unknown> = Object.fromEntries(given)
  return { ...written, timeout: timeout === null ? Infinity : `${timeout}ms` }
}
