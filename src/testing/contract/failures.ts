import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDrainableError, toDrainableError } from '../../provider/error.js'
import { assertSame, NETWORK, outcome, readingOf } from './bench.js'
import type { Bench } from './bench.js'

/** What a provider owes when the product can't be reached, the caller gives up, or it is all over. */
export const failures: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'throws when the product can not be reached, and never reads a zero': async (bench) => {
    await bench.present(bench.a)
    await bench.harness.disconnect()
    for (const refs of [[bench.a], 'all'] as const) {
      const end = await outcome(bench.observe(refs))
      assert.ok('error' in end, 'a reading without the product is no reading')
      assertNetwork(end.error, 'observe')
    }
  },

  'reports no change as done when the product can not be reached': async (bench) => {
    const { identity } = await bench.present(bench.a)
    await bench.harness.disconnect()
    const change = { kind: 'hold', ref: bench.a, to: bench.level, identity } as const
    const end = await outcome(bench.apply([change]))
    if ('error' in end) {
      assertNetwork(end.error, 'apply')
      return
    }
    const [result] = end.value
    assert.ok(result)
    // Refused where it is known that nothing was sent, unknown otherwise.
    if (!('error' in result)) return assert.fail(`refused or unknown, not ${result.status}`)
    assertNetwork(result.error, 'apply')
  },

  'does not report a completed change as refused': async (bench) => {
    const { a, level } = bench
    const loseAnswer = bench.hook('loseAnswer')
    const { identity } = await bench.present(a)
    await loseAnswer()
    const end = await outcome(bench.apply([{ kind: 'hold', ref: a, to: level, identity }]))
    await bench.untilOwn(a, level)
    if ('error' in end) {
      assertNetwork(end.error, 'apply')
      return
    }
    const status = end.value[0]?.status ?? 'nothing'
    assert.ok(['applied', 'unknown'].includes(status), `applied or unknown, not ${status}`)
  },

  'sends nothing for a signal that fired before the call': async (bench) => {
    const reason = new Error('gave up before')
    const signal = AbortSignal.abort(reason)
    const { provider } = bench.harness
    // A look that needed no wait may be answered all the same; a change must not be made.
    const look = await outcome(bench.observe([bench.a], signal))
    if ('error' in look) assertSame(look.error, reason, 'the reason of the signal, as it is')
    const call = provider.apply(
      [{ kind: 'hold', ref: bench.a, to: bench.level }],
      bench.ctx(signal),
    )
    const change = await outcome(bench.within(call, 'an aborted apply', 1_000))
    assert.ok('error' in change, 'an apply under a fired signal rejects')
    assertSame(change.error, reason, 'the reason of the signal, as it is')
    await bench.stays('nothing was changed', async () => {
      return (await bench.present(bench.a)).own === 'ready'
    })
  },

  'ends at once when the signal fires, with its reason': async (bench) => {
    const { provider } = bench.harness
    const refs = bench.harness.members
    const verbs = {
      observe: (signal: AbortSignal) => provider.observe(refs, bench.ctx(signal)),
      apply: (signal: AbortSignal) => {
        return provider.apply([{ kind: 'hold', ref: bench.a, to: bench.level }], bench.ctx(signal))
      },
    }
    for (const [verb, call] of Object.entries(verbs)) {
      const reason = { gaveUp: verb }
      const controller = new AbortController()
      const end = outcome<unknown>(call(controller.signal))
      controller.abort(reason)
      const ended = await bench.within(end, `an aborted ${verb}`, 1_000)
      // A call may have been through already; one that was given up says why, in the caller's own words.
      if ('error' in ended) assertSame(ended.error, reason, `${verb}: signal.reason as it is`)
    }
    const { readings } = await bench.observe(refs)
    assert.ok(readings.length >= refs.length, 'it works on afterwards')
  },

  'leaves no rejection unhandled, wherever a call is given up': async (bench) => {
    const { provider } = bench.harness
    const { a, level } = bench
    const lost: unknown[] = []
    const onLost = (reason: unknown): void => void lost.push(reason)
    process.on('unhandledRejection', onLost)
    try {
      for (const turns of [0, 1, 2, 3, 4, 6, 9, 14, 21, 30, 45]) {
        const back = { kind: 'restore', ref: a, expect: level, to: 'ready' } as const
        const change = turns % 2 === 0 ? ({ kind: 'hold', ref: a, to: level } as const) : back
        const reason = { gaveUp: turns }
        const controller = new AbortController()
        const ctx = bench.ctx(controller.signal)
        const ends = [outcome(provider.apply([change], ctx)), outcome(provider.observe([a], ctx))]
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
        controller.abort(reason)
        for (const end of await bench.within(Promise.all(ends), 'an aborted call', 1_000)) {
          if ('error' in end) assertSame(end.error, reason, 'signal.reason as it is')
        }
      }
      await sleep(bench.scaled(20))
    } finally {
      process.off('unhandledRejection', onLost)
    }
    assert.deepEqual(lost, [])
    assert.ok((await bench.read(a)).present, 'it works on afterwards')
  },

  'ends at once when the signal fires, even without an answer': async (bench) => {
    const { provider } = bench.harness
    await bench.present(bench.a)
    await bench.harness.disconnect()
    const verbs = {
      observe: (signal: AbortSignal) => provider.observe([bench.a], bench.ctx(signal)),
      apply: (signal: AbortSignal) => {
        return provider.apply([{ kind: 'hold', ref: bench.a, to: bench.level }], bench.ctx(signal))
      },
    }
    for (const [verb, call] of Object.entries(verbs)) {
      const reason = { gaveUp: verb }
      const controller = new AbortController()
      const end = outcome<unknown>(call(controller.signal))
      await sleep(bench.scaled(20))
      controller.abort(reason)
      const ended = await bench.within(end, `an aborted ${verb}`, 1_000)
      if ('value' in ended) {
        assertSame(verb, 'apply', 'a reading without the product is no reading')
      } else if (ended.error !== reason) assertNetwork(ended.error, verb)
    }
  },

  'does no work after its close, and can be closed twice': async (bench) => {
    const { provider, requests } = bench.harness
    const under = outcome(provider.observe([bench.a], bench.ctx()))
    await bench.within(provider.close(), 'close')
    await bench.within(under, 'a call under way at the close')
    const closed = requests()
    await sleep(bench.scaled(300))
    assertSame(requests(), closed, 'nothing is asked for by itself')
    const after = outcome(provider.observe([bench.a], bench.ctx()))
    const ended = await bench.within(after, 'observe after close')
    assert.ok('error' in ended, 'a reading after the close is no reading')
    assert.ok(
      isDrainableError(ended.error, 'CONNECTION_LOST') && !ended.error.retryable,
      `observe after close() throws CONNECTION_LOST with retryable: false, by which alone the core learns of the close, not ${String(ended.error)}`,
    )
    await bench.within(provider.close(), 'a second close')
    await bench.within(Promise.resolve(provider[Symbol.asyncDispose]()), 'a disposal after close')
  },

  'pushes snapshots where it can push, and stops when told to': async (bench) => {
    const { provider } = bench.harness
    if (!provider.watch) return bench.skip('it has no watch')
    const controller = new AbortController()
    const watched = provider.watch([bench.a, bench.b], bench.ctx(controller.signal))
    const end = outcome(
      (async () => {
        let seen = false
        for await (const snapshot of watched) {
          const own = readingOf(snapshot, bench.a)
          readingOf(snapshot, bench.b)
          if (own.present && own.own === bench.level) {
            seen = true
            break
          }
        }
        return seen
      })(),
    )
    await bench.hold(bench.a)
    const ended = await bench.within(end, 'a watch that sees the change')
    assert.ok('value' in ended && ended.value, 'the change was pushed')
    const reason = new Error('enough')
    const second = provider.watch([bench.a], bench.ctx(controller.signal))[Symbol.asyncIterator]()
    const next = outcome(
      second
        .next()
        .then(() => second.next())
        .then(() => second.next()),
    )
    controller.abort(reason)
    const stopped = await bench.within(next, 'an aborted watch', 1_000)
    if ('error' in stopped) assertSame(stopped.error, reason, 'signal.reason as it is')
  },
}

function assertNetwork(thrown: unknown, verb: string): void {
  // An error of the network that keeps its code is read by the core as it is.
  const error = toDrainableError(thrown, '', verb)
  assert.ok(
    NETWORK.includes(error.code),
    `${verb}: a network code, not ${error.code} (${error.message})`,
  )
  assertSame(error.retryable, true, `${verb}: trying again may help`)
}
