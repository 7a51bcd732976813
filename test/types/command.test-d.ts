import type { DrainableError, RollEvent } from 'drainable'
import { expectTypeOf, test } from 'vitest'
import type * as z from 'zod'
import type { Result } from '../../src/cli/result.js'
import type { lineSchema, resultSchema } from '../../src/cli/schema/result.js'

type Line = RollEvent | ({ readonly type: 'result' } & Result)
type CheckedResult = z.output<typeof resultSchema>
type CheckedLine = z.output<typeof lineSchema>

/** What `JSON.stringify` leaves of a value. */
type Written<T> = T extends DrainableError
  ? Pick<T, 'name' | 'code' | 'message' | 'retryable' | 'ref' | 'provider'>
  : T extends readonly (infer U)[]
    ? Written<U>[]
    : T extends object
      ? { [K in keyof T]: K extends 'native' ? z.core.util.JSONType : Written<T[K]> }
      : T

/** What a schema lets be as it is: the data of a product, and a change. */
type Opaque = 'native' | 'change' | 'changes'

/** The names of all fields, with those around them: a field that only one side knows would fit otherwise. */
type Names<T, At extends string = ''> = T extends readonly (infer U)[]
  ? Names<U, At>
  : T extends object
    ? { [K in keyof T & string]: `${At}${K}` | Inside<T, K, At> }[keyof T & string]
    : never

type Inside<T, K extends keyof T & string, At extends string> = K extends Opaque
  ? never
  : Names<T[K], `${At}${K}.`>

test('a document of the command fits its schema', () => {
  expectTypeOf<Written<Result>>().toExtend<CheckedResult>()
  expectTypeOf<Names<Written<Result>>>().toEqualTypeOf<Names<CheckedResult>>()
})

test('a line of the command fits its schema', () => {
  expectTypeOf<Written<Line>>().toExtend<CheckedLine>()
  expectTypeOf<Names<Written<Line>>>().toEqualTypeOf<Names<CheckedLine>>()
})
