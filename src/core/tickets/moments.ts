import { z } from 'zod'

/** Schemas of moments: numbers that are milliseconds by some clock, to be moved from one clock to another. */
const moments = z.registry<{ readonly clock: 'run' }>()

/** A moment by the run's clock; in a ticket, in epoch milliseconds. */
export const moment = z.number().register(moments, { clock: 'run' })

/** The parts of a schema's definition that lead on. */
interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly element?: z.ZodType
  readonly innerType?: z.ZodType
  readonly options?: readonly z.ZodType[]
  readonly items?: readonly z.ZodType[]
}

/** A copy of a value in which every moment that its schema marks is moved. */
export function moveMoments<T>(schema: z.ZodType<T>, value: T, by: number): T {
  return move(schema, value, by) as T
}

function move(schema: z.ZodType, value: unknown, by: number): unknown {
  if (value === null || value === undefined) return value
  if (moments.has(schema)) return typeof value === 'number' ? value + by : value
  const def = schema.def as unknown as Definition
  if (def.innerType !== undefined) return move(def.innerType, value, by)
  if (def.element !== undefined && Array.isArray(value)) {
    const { element } = def
    return value.map((item) => move(element, item, by))
  }
  if (def.items !== undefined && Array.isArray(value))
    return value.map((item, i) => move(def.items?.[i] ?? z.unknown(), item, by))
  if (def.options !== undefined) {
    const fitting = def.options.find((option) => option.safeParse(value).success)
    return fitting === undefined ? value : move(fitting, value, by)
  }
  if (def.shape === undefined) return value
  const { shape } = def
  return Object.fromEntries(
    Object.entries(value as Record<string, unknown>)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, move(shape[key] ?? z.unknown(), item, by)]),
  )
}
