import {
  drain,
  DrainableError,
  isDrainableError,
  ready,
  resumeDrain,
  startDrain,
  stepDrain,
  withEvents,
} from 'drainable'
import type {
  Drain,
  DrainableProvider,
  DrainEvent,
  DrainReport,
  ErrorCode,
  LoadScope,
  MemberReport,
  Outcome,
  Policy,
  Proof,
  Reading,
  Ticket,
} from 'drainable'
import { describe, expectTypeOf, test } from 'vitest'

declare const balancer: DrainableProvider
declare const ticket: Ticket
declare const drained: Drain
const web1 = { pool: 'web', member: 'web1' }

describe('drain', () => {
  test('gives the report, or what the action gives', () => {
    expectTypeOf(drain(balancer, web1)).resolves.toEqualTypeOf<DrainReport>()
    expectTypeOf(
      drain(balancer, web1, {}, () => Promise.resolve(7)),
    ).resolves.toEqualTypeOf<number>()
  })

  test('takes a member, several, an address everywhere, or a pool', () => {
    expectTypeOf(drain).toBeCallableWith(balancer, [web1])
    expectTypeOf(drain).toBeCallableWith(balancer, { address: '10.0.0.1' })
    expectTypeOf(drain).toBeCallableWith(balancer, { pool: 'web' })
    // @ts-expect-error a name alone does not say the pool
    void drain(balancer, 'web1')
  })

  test('refuses durations of unknown units and unknown options', () => {
    expectTypeOf<'2m'>().toExtend<Policy['timeout']>()
    expectTypeOf<120_000>().toExtend<Policy['timeout']>()
    // @ts-expect-error no such unit
    void drain(balancer, web1, { timeout: '30 seconds' })
    // @ts-expect-error a slip of the keyboard must not mean "for ever"
    void drain(balancer, web1, { timout: '30s' })
    // @ts-expect-error a closed set of words
    void drain(balancer, web1, { onTimeout: 'kill' })
  })
})

describe('a drain under way', () => {
  test('is returned at once, and its end never throws', () => {
    expectTypeOf(startDrain(balancer, web1)).toEqualTypeOf<Drain>()
    expectTypeOf(resumeDrain(balancer, ticket)).toEqualTypeOf<Drain>()
    expectTypeOf(drained.done).resolves.toEqualTypeOf<DrainReport>()
    expectTypeOf(drained.ticket).resolves.toEqualTypeOf<Ticket>()
  })

  test('gives each listener its own event', () => {
    drained.on('idle', (event) => {
      expectTypeOf(event.proof).toEqualTypeOf<Proof>()
    })
    drained.on('end', (event) => {
      expectTypeOf(event.report).toEqualTypeOf<DrainReport>()
    })
    // @ts-expect-error no such event
    drained.on('finished', () => undefined)
  })

  test('can be iterated and disposed of', () => {
    expectTypeOf(drained).toExtend<AsyncIterable<DrainEvent>>()
    expectTypeOf(drained).toExtend<AsyncDisposable>()
  })
})

describe('reports', () => {
  test('have an outcome from a closed set for each member', () => {
    expectTypeOf<MemberReport['outcome']>().toEqualTypeOf<Outcome>()
    expectTypeOf<MemberReport['verifiedIdle']>().toEqualTypeOf<boolean>()
    expectTypeOf<DrainReport['members']>().toEqualTypeOf<readonly MemberReport[]>()
  })

  test('come with errors of some codes only', () => {
    const error: unknown = new DrainableError('NOT_FOUND', 'backend web has no server web9')
    if (isDrainableError(error, 'DRAIN_TIMEOUT')) {
      expectTypeOf(error.report).toEqualTypeOf<DrainReport>()
      expectTypeOf(error.code).toEqualTypeOf<'DRAIN_TIMEOUT'>()
    }
    if (isDrainableError(error)) expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
  })
})

describe('the provider contract', () => {
  test('never has a load that reads as zero while it is unknown', () => {
    expectTypeOf<undefined>().toExtend<LoadScope['arrivals']>()
  })

  test('tells a member that is there from one that is not', () => {
    const reading = {} as Reading
    // @ts-expect-error a member that is absent has no state
    expectTypeOf(reading.own).not.toBeUndefined()
    if (reading.present) expectTypeOf(reading.own).not.toBeUndefined()
  })

  test('is kept, with events, by withEvents', () => {
    expectTypeOf(withEvents(balancer)).toExtend<DrainableProvider>()
    withEvents(balancer).on('load', (event) => {
      expectTypeOf(event.active).toEqualTypeOf<number>()
      expectTypeOf(event.complete).toEqualTypeOf<boolean>()
    })
  })
})

test('one step gives a ticket to continue with', () => {
  expectTypeOf(stepDrain(balancer, ticket)).resolves.toHaveProperty('ticket')
  expectTypeOf(
    stepDrain(balancer, { target: web1, policy: { timeout: '2m' } }),
  ).resolves.toHaveProperty('againIn')
  // @ts-expect-error a step has no listeners: it holds nothing between two calls
  void stepDrain(balancer, { target: web1, policy: { onEvent: () => undefined } })
})

test('ready waits for health when it is told to', () => {
  expectTypeOf(ready).toBeCallableWith(balancer, web1, { waitHealthy: '60s' })
  expectTypeOf(ready).toBeCallableWith(balancer, web1, { waitHealthy: false })
})
