import type { PolicyData, Ticket } from 'drainable'
import { expectTypeOf, test } from 'vitest'
import type * as z from 'zod'
import type { keptShape } from '../../src/core/tickets/options-table.js'
import type { ticketSchema } from '../../src/core/tickets/schema.js'

type Frozen<T> = T extends readonly (infer U)[]
  ? number extends T['length']
    ? readonly Frozen<U>[]
    : Readonly<T>
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T

type Checked = Frozen<z.infer<ReturnType<typeof ticketSchema>>>

/** The places with fields that may be absent: one that only one side knows would fit otherwise. */
type Optional<T extends Checked | Ticket> = [
  keyof T,
  keyof T['parts'][number],
  keyof T['members'][number],
  keyof T['members'][number]['ref'],
  keyof T['members'][number]['late'][number],
  keyof Extract<T['members'][number]['late'][number], { readonly kind: 'hold' }>,
  keyof Extract<T['members'][number]['late'][number], { readonly kind: 'restore' }>,
  keyof T['members'][number]['lost'][number],
]

test('a ticket is what its schema checks, field by field', () => {
  const forth = (checked: Checked): Ticket => checked
  const back = (ticket: Ticket): Checked => ticket
  for (const either of [forth, back]) expectTypeOf(either).toBeFunction()
  expectTypeOf<Optional<Checked>>().toEqualTypeOf<Optional<Ticket>>()
  expectTypeOf<
    Frozen<z.infer<z.ZodObject<ReturnType<typeof keptShape>>>>
  >().toEqualTypeOf<PolicyData>()
})
