import assert from 'node:assert/strict'
import type { PresentReading, Reading, Snapshot } from '../../provider/contract.js'
import { isDrainableError } from '../../provider/error.js'
import { assertSame, byName, outcome, readingOf } from './bench.js'
import type { Bench } from './bench.js'

/** What a provider owes when answers are damaged, and when a call ends somewhere in its middle. */
export const damage: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'does not read less from a truncated or malformed answer': async (bench) => {
    const { a, b } = bench
    const damage = bench.hook('damage')
    const end = bench.counts ? await bench.occupy(a) : undefined
    const whole = await bench.present(a)
    for (const how of ['cut', 'garbage'] as const) {
      const mend = await damage(how)
      for (const refs of [[a, b], 'all', [a]] as const) {
        const seen = await outcome(bench.observe(refs))
        if ('value' in seen) assertNotLess(seen.value, readingOf(seen.value, a), whole, how)
        else assert.ok(isDrainableError(seen.error), `${how}: ${String(seen.error)}`)
      }
      await mend()
      await untilWhole(bench, whole)
    }
    await end?.()
  },

  'does not report a half-made change as refused': async (bench) => {
    const { harness, a, b, level } = bench
    const refuseChange = bench.hook('refuseChange')
    for (const nth of [0, 1, 2]) {
      const { identity } = await bench.present(a)
      const mend = await refuseChange(nth)
      const changes = [
        { kind: 'hold', ref: a, to: level, identity },
        { kind: 'hold', ref: b, to: level },
      ] as const
      const end = await outcome(bench.apply(changes))
      await mend()
      for (const [i, ref] of [a, b].entries()) {
        const status = 'value' in end ? end.value[i]?.status : 'unknown'
        if (status === 'applied' || status === 'unchanged') await bench.untilOwn(ref, level)
        if (status === 'rejected') {
          const { own } = await bench.present(ref)
          assertSame(own, 'ready', `request ${nth} was refused, and nothing of it is left`)
        }
        await harness.setBehind(ref, 'ready')
        await bench.untilOwn(ref, 'ready')
      }
    }
  },

  'leaves no connection behind, wherever a call is given up': async (bench) => {
    const { a, level } = bench
    const { provider } = bench.harness
    const sockets = bench.hook('sockets')
    const hold = { kind: 'hold', ref: a, to: level } as const
    const back = { kind: 'restore', ref: a, expect: level, to: 'ready' } as const
    await Promise.all([provider.apply([hold], bench.ctx()), provider.observe([a], bench.ctx())])
    const kept = Math.max(2, sockets())
    for (const turns of [0, 1, 2, 3, 5, 8, 13, 21]) {
      const controller = new AbortController()
      const ctx = bench.ctx(controller.signal)
      const change = turns % 2 === 0 ? back : hold
      const ends = [outcome(provider.apply([change], ctx)), outcome(provider.observe([a], ctx))]
      for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate)
      controller.abort(new Error('enough'))
      await bench.within(Promise.all(ends), 'an aborted call', 1_000)
    }
    await bench.until(`no more connections than two calls keep, which is ${kept}`, () => {
      return Promise.resolve(sockets() <= kept || undefined)
    })
    await provider.close()
    await bench.until('none once it is closed', () => Promise.resolve(sockets() === 0 || undefined))
  },
}

/** The member is there, and no process that was read before is gone or has less work, unless it says unread. */
function assertNotLess(
  snapshot: Snapshot,
  seen: Reading,
  whole: PresentReading,
  how: string,
): void {
  assert.ok(seen.present, `${how}: a member is absent only where the product says so`)
  const scopes = byName(seen.scopes)
  const { ended: known = [] } = snapshot
  const ended = known === 'unlisted' ? [] : known
  for (const scope of whole.scopes) {
    assert.ok(!ended.includes(scope.scope), `${how}: ${scope.scope} has not ended`)
    const now = scopes.get(scope.scope)
    if (now === undefined) {
      assert.ok(snapshot.ended !== 'unlisted', `${how}: ${scope.scope} is listed, or not all are`)
      continue
    }
    assert.notEqual(now.state, 'ended', `${how}: ${scope.scope} has not ended`)
    if (now.state === 'read')
      assert.ok(now.active + now.queued >= scope.active + scope.queued, `${how}: no less work`)
  }
}

/** The answers are whole again: so are the readings. */
async function untilWhole(bench: Bench, whole: PresentReading): Promise<void> {
  await bench.until('it is read again', async () => {
    const seen = await outcome(bench.read(bench.a))
    if ('error' in seen || !seen.value.present) return undefined
    const read = seen.value.scopes.filter(({ state }) => state === 'read')
    return read.length >= whole.scopes.filter(({ state }) => state === 'read').length || undefined
  })
}
