import { isIPv4 } from 'node:net'
import type { Change, MemberRef } from '../../provider/contract.js'
import { formatRef } from '../../provider/member-ref.js'
import { assertRejected, assertSame, assertUnsupported, succeeded } from './bench.js'
import type { Bench } from './bench.js'

/** What `apply` owes where a member leaves its pool or joins it. */
export const membership: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'removes a member where it can, and says so where it can not': async (bench) => {
    const { a, b } = bench
    if (!bench.capabilities.remove) {
      assertUnsupported(await bench.applyOne({ kind: 'remove', ref: a }), 'remove')
      assertSame((await bench.read(a)).present, true, 'it is still there')
      return
    }
    await removed(bench, a)
    assertSame((await bench.present(b)).own, 'ready', 'the other one is untouched')
  },

  'adds a member where it can, and says so where it can not': async (bench) => {
    const { a } = bench
    const { address = '127.0.0.1', port = 80, weight, native } = await bench.present(a)
    const add: Change = {
      kind: 'add',
      ref: a,
      address,
      port,
      ...(weight !== undefined && { weight }),
      ...(native !== undefined && { native }),
    }
    if (!bench.capabilities.add) {
      const ref = { pool: bench.pool, member: 'drainable-new' }
      assertUnsupported(await bench.applyOne({ ...add, ref }), 'add')
      assertSame((await bench.read(ref)).present, false, 'nothing was added')
      return
    }
    await bench.harness.setBehind(a, 'gone')
    await bench.untilReading(a, 'it is gone', (r) => !r.present)
    await bench.done(add)
    await bench.untilReading(a, 'it is back', (r) => r.present)
    const back = await bench.present(a)
    assertSame(back.address ?? address, address, 'at the address that was asked for')
    assertSame(back.port ?? port, port, 'and at the port')
    for (const spelling of spellings(address)) {
      const result = await bench.applyOne({ ...add, address: spelling })
      assertSame(result.status, 'unchanged', `it is there already, as ${spelling} too`)
    }
    const elsewhere = await bench.applyOne({ ...add, address: '203.0.113.77' })
    assertRejected(elsewhere, ['CONFLICT', 'INVALID_OPTIONS'], 'an add of a name that is taken')
    assertSame((await bench.present(a)).identity, back.identity, 'it is the same member')
  },
}

/** Takes a member out by the product's own rules: held first, and asked again while it says "not yet". */
async function removed(bench: Bench, ref: MemberRef): Promise<void> {
  for (const to of bench.levels) await bench.hold(ref, to)
  const { identity } = await bench.present(ref)
  await bench.until(`${formatRef(ref)} is removed`, async () => {
    const result = await bench.applyOne({ kind: 'remove', ref, identity })
    if (succeeded(result)) return true
    assertRejected(result, ['CONFLICT'], 'remove, while it is not yet possible')
    return undefined
  })
  await bench.untilReading(ref, 'it is gone', (r) => !r.present)
}

/** Other ways to write an address; a name has none. */
function spellings(address: string): string[] {
  if (isIPv4(address)) return [address, `::ffff:${address}`, `0:0:0:0:0:FFFF:${address}`]
  return [address, address.toUpperCase()]
}
