import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkSnapshot } from '../../../../src/core/balancer/look/gate.js'
import { fileTickets } from '../../../../src/core/tickets/file-tickets.js'
import { fileEndpoints } from '../../../../src/adapters/envoy/index.js'
import type { LoadScope, PresentReading, Snapshot } from '../../../../src/provider/contract.js'
import { formatRef } from '../../../../src/provider/member-ref.js'

/** ESC, a line break, C1 (CSI), a bidi override, a zero width space, a line separator. */
const EVIL = ['\u001b[2J', '\r\n', '\u009b31m', '\u202e', '\u200b', '\u2028']
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/u

const ref = { pool: 'web', member: 'web1' }
const scope: LoadScope = {
  scope: 'worker 7',
  incarnation: 'host/7/1',
  state: 'read',
  sampledAt: 1,
  active: 0,
  queued: 0,
  inForce: true,
}
const reading: PresentReading = {
  ref,
  present: true,
  identity: '10.0.0.1:80',
  own: 'ready',
  serves: true,
  health: 'up',
  scopes: [scope],
}

function through(given: Partial<PresentReading>, ended: readonly string[] = []): Snapshot {
  return checkSnapshot({ readings: [{ ...reading, ...given }], pools: [], ended }, 'toy', 2)
}

describe('text of a product that enters the core', () => {
  test('never has unprintable characters', () => {
    const evil = fc
      .array(fc.oneof(fc.string(), fc.constantFrom(...EVIL)), { minLength: 1 })
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(evil, (text) => {
        const { readings, ended } = through(
          {
            address: text,
            unverified: text,
            hints: [text],
            scopes: [{ ...scope, scope: text, incarnation: text, note: text }],
          },
          [text],
        )
        const found = readings[0] as PresentReading
        const { address, unverified, hints, scopes } = found
        expect(JSON.stringify({ address, unverified, hints, scopes, ended })).not.toMatch(
          UNPRINTABLE,
        )
        // A process that has ended is known by the name that it was listed with.
        expect(ended).toEqual([scopes[0]?.scope])
      }),
    )
  })

  test('is cut where it is long, but a name is not', () => {
    const long = 'x'.repeat(100_000)
    const [found] = through({
      hints: [long],
      scopes: [{ ...scope, scope: long, note: long }],
    }).readings
    expect((found as PresentReading).hints?.[0]?.length).toBeLessThan(1_100)
    expect(found?.scopes[0]?.note?.length).toBeLessThan(1_100)
    expect(found?.scopes[0]?.scope).toBe(long)
  })

  test('two names that then look alike are one unread process', () => {
    const twins = [
      { ...scope, scope: 'a\u001bb' },
      { ...scope, scope: 'a b' },
    ]
    expect(through({ scopes: twins }).readings[0]?.scopes).toMatchObject([
      { scope: 'a b', state: 'unread' },
    ])
  })

  test('is passed on unchanged if it is printable', () => {
    const snapshot = { readings: [reading], pools: [], ended: ['worker 6'] }
    expect(checkSnapshot(snapshot, 'toy', 2)).toBe(snapshot)
  })

  test('leaves the identity of a member unchanged', () => {
    const identity = 'a\u001bb'
    expect(through({ identity }).readings[0]).toMatchObject({ identity })
  })
})

describe('an unprintable name', () => {
  test('of a member is printed without control characters', () => {
    expect(formatRef({ pool: 'a\u001b[2J', member: 'b\nc', balancer: 'd\u202e' })).toBe(
      'd :a [2J/b c',
    )
  })

  test('of a ticket, or text of its file, reaches no message as it is', async () => {
    const path = await mkdtemp(join(tmpdir(), 'drainable-printable-'))
    try {
      const store = fileTickets(path)
      const id = `x\u001b[2J${'y'.repeat(10_000)}`
      const refused = await Promise.resolve()
        .then(() => store.get(id))
        .catch((error: unknown) => error as Error)
      expect((refused as Error).message).toMatch(/^'x \[2Jy+…' can't be a ticket's id/)
      await writeFile(join(path, 'a.json'), '\u001b[2J')
      const damaged = (await Promise.resolve(store.get('a')).catch(
        (error: unknown) => error,
      )) as Error
      expect(`${damaged.message} ${String(damaged.cause)}`).not.toMatch(UNPRINTABLE)
    } finally {
      await rm(path, { recursive: true, force: true })
    }
  })

  test('of a file of endpoints is not in the instance as it is', () => {
    const sink = fileEndpoints({ cluster: 'web', path: '/tmp/a\u001b[2J.json' })
    expect(sink.instance).toBe('file:/tmp/a [2J.json')
  })
})
