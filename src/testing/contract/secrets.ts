import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import type { Change } from '../../provider/contract.js'
import { isDrainableError } from '../../provider/error.js'
import { outcome } from './bench.js'
import type { Bench } from './bench.js'

/** One that is tried again for a product that now and then refuses good ones, and what comes around a login. */
const MOST_LOGINS = 4
/** A line of a key that is at least so long is a secret too: who cuts a PEM text into lines prints it all the same. */
const PART = 32

/** What a provider owes those whose passwords, keys and tokens it uses. */
export const secrets: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'shows no password, key or token, whatever goes wrong': async (bench) => {
    const { harness, a, b, level } = bench
    const known = bench.hook('secrets')
    const { provider } = harness
    const hold = { kind: 'hold', ref: a, to: level, identity: 'another member' } as const
    await shows(bench, known, 'a whole answer', [hold, { kind: 'hold', ref: b, to: level }])
    assert.ok(known().length > 0, 'the harness names the secrets')
    for (const how of ['cut', 'garbage'] as const) {
      const mend = await harness.damage?.(how)
      await shows(bench, known, `a ${how} answer`, [hold])
      await mend?.()
    }
    const mend = await harness.refuseChange?.(0)
    await shows(bench, known, 'a refusal', [{ kind: 'hold', ref: a, to: level }])
    await mend?.()
    await harness.disconnect()
    await shows(bench, known, 'a product that is not there', [hold])
    await provider.close()
    await shows(bench, known, 'a closed provider', [hold])
  },

  'does not send a refused password again and again': async (bench) => {
    const { provider, password } = bench.hook('stranger')()
    const { requests } = bench.harness
    try {
      const before = requests()
      for (let i = 0; i < 5; i += 1) {
        const end = await outcome(bench.within(provider.observe([bench.a], bench.ctx()), 'observe'))
        assert.ok('error' in end, 'a reading without rights is no reading')
        assert.ok(isDrainableError(end.error), String(end.error))
        assert.equal(end.error.code, 'UNAUTHENTICATED')
        assertShowsNone(end.error, [password], 'the refusal of a password')
      }
      const sent = requests() - before
      assert.ok(
        sent <= MOST_LOGINS,
        `five calls sent ${sent} requests, expected ${MOST_LOGINS} at most`,
      )
    } finally {
      await provider.close()
    }
  },
}

/** All that a caller gets to see of one look and one change, and of the provider itself. */
async function shows(
  bench: Bench,
  known: () => readonly string[],
  after: string,
  changes: readonly Change[],
): Promise<void> {
  const { provider } = bench.harness
  const seen = [
    await outcome(bench.within(provider.describe(bench.ctx()), 'describe')),
    await outcome(bench.within(provider.observe([bench.a], bench.ctx()), 'observe')),
    await outcome(bench.within(provider.apply(changes, bench.ctx()), 'apply')),
    provider,
  ]
  for (const one of seen) assertShowsNone(one, known(), after)
}

/** No secret in what is printed of a value, in its JSON, or in the messages of an error and its causes. */
function assertShowsNone(value: unknown, known: readonly string[], after: string): void {
  const texts = [inspect(value, { depth: 12, showHidden: true }), asJson(value), ...messages(value)]
  for (const secret of known.flatMap(parts)) {
    const found = texts.find((text) => text.includes(secret))
    // The text itself is not told: this message is read in logs too.
    assert.ok(
      found === undefined,
      `a secret of ${secret.length} characters is shown after ${after}`,
    )
  }
}

function parts(secret: string): string[] {
  return [secret, ...secret.split('\n').filter((line) => line.length >= PART && line !== secret)]
}

function asJson(value: unknown): string {
  try {
    // In a list, because a value of its own may have no JSON at all.
    return JSON.stringify([value])
  } catch {
    return '' // a value with a loop in it has no JSON
  }
}

function messages(value: unknown): string[] {
  const found: string[] = []
  for (let error = value, depth = 0; error instanceof Error && depth < 12; depth += 1) {
    found.push(error.message, String(error), error.stack ?? '')
    error = error.cause
  }
  return found
}
