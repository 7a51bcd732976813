import * as z from 'zod'
import { once } from '../../provider/once.js'

/** Schemas of moments: numbers that are milliseconds by some clock, to be moved from one clock to another. */
const moments = once(() => z.registry<{ readonly clock: 'run' }>())

/** A date can represent no moment farther from 1970, in milliseconds; some room is left to move it to another clock. */
const FARTHEST = 8e15

/** A moment of the wall clock, in epoch milliseconds. */
export const epoch = once(() => z.number().min(-FARTHEST).max(FARTHEST))

/** A moment by the run's clock; in a ticket, in epoch milliseconds. */
export const moment = once(() => epoch().register(moments(), { clock: 'run' }))

/** The parts of a schema's definition that lead on. */
interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly element?: z.ZodType
  readonly innerType?: z.ZodType
  readonly options?: readonly z.ZodType[]
  readonly items?: readonly z.ZodType[]
}

/** A copy of a value with its moments moved by so many milliseconds. */
type Mover = (value: unknown, by: number) => unknown

/** One for each schema: a ticket is written with every change, and its schema is always the same. */
const movers = new WeakMap<z.ZodType, Mover>()

/** A copy of a value in which every moment that its schema marks is moved. */
export function moveMoments<T>(schema: z.ZodType<T>, value: T, by: number): T {
  return moverOf(schema)(value, by) as T
}

function moverOf(schema: z.ZodType): Mover {
  let mover = movers.get(schema)
  if (mover === undefined) {
    const make = holdsMoment(schema) ? makeMover(schema) : copy
    mover = (value, by) => (value === null || value === undefined ? value : make(value, by))
    movers.set(schema, mover)
  }
  return mover
}

function makeMover(schema: z.ZodType): Mover {
  if (moments().has(schema)) return (value, by) => (typeof value === 'number' ? value + by : value)
  const { innerType, element, items, options, shape } = definitionOf(schema)
  if (innerType !== undefined) return moverOf(innerType)
  if (options !== undefined) {
    return (value, by) => {
      const fitting = options.find((option) => option.safeParse(value).success)
      return fitting === undefined ? value : moverOf(fitting)(value, by)
    }
  }
  if (element !== undefined || items !== undefined) {
    const parts = (items ?? []).map(moverOf)
    const each = element === undefined ? copy : moverOf(element)
    return (value, by) =>
      Array.isArray(value) ? value.map((item, i) => (parts[i] ?? each)(item, by)) : value
  }
  const fields = new Map(Object.entries(shape ?? {}).map(([key, of]) => [key, moverOf(of)]))
  return (value, by) => mapFields(value, (item, key) => (fields.get(key) ?? copy)(item, by))
}

function definitionOf(schema: z.ZodType): Definition {
  return schema.def
}

/** Whether a moment is anywhere in what a schema describes. */
function holdsMoment(schema: z.ZodType): boolean {
  if (moments().has(schema)) return true
  const { innerType, element, items = [], options = [], shape = {} } = definitionOf(schema)
  return [innerType, element, ...items, ...options, ...Object.values(shape)].some(
    (part) => part !== undefined && holdsMoment(part),
  )
}

/** Plain data, copied: what is handed out must not lead back to the state it was taken from. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  return typeof value === 'object' && value !== null ? mapFields(value, copy) : value
}

/** Without the fields that are undefined: JSON has none. */
function mapFields(value: unknown, map: (item: unknown, key: string) => unknown): unknown {
  return Object.fromEntries(
    Object.entries(value as Record<string, unknown>)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, map(item, key)]),
  )
}
