import { assertType, expectTypeOf, test } from 'vitest'
import {
  drain,
  isDrainableError,
  ready,
  restore,
  resumeDrain,
  select,
  startDrain,
  stepDrain,
  watch,
  withEvents,
  type Drain,
  type DrainEvent,
  type DrainReport,
  type DrainableError,
  type DrainableProvider,
  type Duration,
  type Proof,
  type Reading,
  type ReadyReport,
  type Target,
  type Ticket,
} from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { fakeClock, fakeProvider, providerContract, type ContractHarness } from 'drainable/testing'

declare const lb: DrainableProvider
declare const ticket: Ticket
const web1 = { pool: 'web', member: 'web1' }

test('a drain gives the report, or the value of its action', () => {
  expectTypeOf(drain(lb, web1)).resolves.toEqualTypeOf<DrainReport>()
  expectTypeOf(drain(lb, web1, {}, async () => 'x' as const)).resolves.toEqualTypeOf<'x'>()
})

test('every target shape is accepted', () => {
  assertType<Target>(web1)
  assertType<Target>([web1, { ...web1, balancer: 'a' }])
  assertType<Target>({ address: '10.0.0.1', port: 80 })
  assertType<Target>({ pool: 'web' })
  // @ts-expect-error a port alone hits nothing
  assertType<Target>({ port: 80 })
})

test('durations are milliseconds or a text with a unit', () => {
  assertType<Duration>(30_000)
  assertType<Duration>('2m')
  // @ts-expect-error no such unit
  assertType<Duration>('2 minutes')
})

test('handles, events and errors are typed by their kind', () => {
  expectTypeOf(startDrain(lb, web1)).toExtend<Drain>()
  expectTypeOf(watch(lb, web1)).toExtend<Drain>()
  expectTypeOf(resumeDrain(lb, ticket)).toExtend<Drain>()
  startDrain(lb, web1).on('idle', (event) => expectTypeOf(event.proof).toEqualTypeOf<Proof>())
  startDrain(lb, web1).once('idle', (event) => expectTypeOf(event.proof).toEqualTypeOf<Proof>())
  withEvents(lb).once('load', (event) => expectTypeOf(event.queued).toEqualTypeOf<number>())
  // @ts-expect-error no such event
  withEvents(lb).once('laod', () => undefined)
  withEvents(lb).on('load', (event) => expectTypeOf(event.active).toEqualTypeOf<number>())
  // @ts-expect-error there is no such event
  startDrain(lb, web1).on('done', () => undefined)
  const event = {} as DrainEvent
  if (event.type === 'end') expectTypeOf(event.report).toEqualTypeOf<DrainReport>()
  const error: unknown = null
  if (isDrainableError(error, 'DRAIN_TIMEOUT')) {
    expectTypeOf(error).toExtend<DrainableError<'DRAIN_TIMEOUT'>>()
    expectTypeOf(error.report).toEqualTypeOf<DrainReport>()
  }
  if (isDrainableError(error)) expectTypeOf(error.report).toEqualTypeOf<DrainReport | undefined>()
})

test('a typo in an option is an error', () => {
  // @ts-expect-error timeuot is misspelt
  void drain(lb, web1, { timeuot: '30s' })
  // @ts-expect-error no such word
  void drain(lb, web1, { onTimeout: 'kill' })
  // @ts-expect-error a step takes no signal in its policy
  void stepDrain(lb, { target: web1, policy: { signal: AbortSignal.abort() } })
})

test('the other verbs have their own types', () => {
  expectTypeOf(ready(lb, web1)).resolves.toEqualTypeOf<ReadyReport>()
  expectTypeOf(select(lb, web1)).resolves.toEqualTypeOf<readonly Reading[]>()
  expectTypeOf(restore(lb, ticket)).resolves.toEqualTypeOf<DrainReport>()
  expectTypeOf(haproxyRuntime).returns.toExtend<DrainableProvider>()
  expectTypeOf(fakeProvider).returns.toExtend<DrainableProvider>()
  expectTypeOf(fakeClock().runUntil(Promise.resolve(1))).resolves.toBeNumber()
  expectTypeOf(providerContract).parameter(0).toEqualTypeOf<() => Promise<ContractHarness>>()
})
