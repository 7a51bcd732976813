import assert from 'node:assert/strict'
import { CAPABILITY_WORDS } from '../../provider/capability-words.js'
import type { LoadScope, MemberRef } from '../../provider/contract.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { assertSame, byName, readingOf, work } from './bench.js'
import type { Bench } from './bench.js'

/** Names that would be more than a name in one product's protocol or another's. */
const HOSTILE = [
  'x state maint',
  'x;disable server web/x',
  'x\nset server web/x state maint',
  'x\r\n\r\nGET / HTTP/1.1',
  '../../x',
  'x?action=disable&y=',
  'x%2f..%2f..',
  '.',
  '..',
  '#1',
  '-1',
  '',
  'é',
  'x'.repeat(5_000),
]

/** What `describe` and `observe` owe. */
export const reads: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'describes itself sanely, and the same way twice': async (bench) => {
    const { provider } = bench.harness
    assert.equal(provider.specVersion, 1)
    assert.ok(provider.name.length > 0, 'it has a name')
    assert.ok(provider.instance.length > 0, 'it says which instance it is')
    assert.doesNotMatch(provider.instance, /\/\/[^/]*:[^/]*@/, 'no credentials in the instance')
    const info = await bench.within(provider.describe(bench.ctx()), 'describe')
    assert.ok(info.product.length > 0 && info.version.length > 0, 'product and version are named')
    const c = info.capabilities
    assert.ok(c.ladder.includes('ready'), 'the ladder begins with ready')
    assert.ok(c.ladder.length > 1, 'the ladder has a state that takes no new work')
    assertSame(new Set(c.ladder).size, c.ladder.length, 'no state is named twice')
    assertSame(c.maint === 'none', !c.ladder.includes('maint'), 'maint agrees with the ladder')
    const said = { maint: c.maint, counts: c.counts, removal: c.removal ?? 'unknown' }
    for (const [key, words] of Object.entries(CAPABILITY_WORDS)) {
      const known: readonly unknown[] = words
      const isKnown = known.includes(said[key as keyof typeof said])
      assert.ok(isKnown, `capabilities.${key} is one of ${words.join(', ')}`)
    }
    for (const key of ['freshness', 'blind', 'lateBound', 'minTimeout', 'minInterval'] as const) {
      const ms = c[key] ?? 0
      assert.ok(Number.isFinite(ms) && ms >= 0, `${key} is a number of milliseconds`)
    }
    for (const key of ['terminate', 'remove', 'add', 'countsAfterRemove'] as const) {
      assertSame(typeof c[key], 'boolean', `capabilities.${key} is true or false`)
    }
    const again = await bench.within(provider.describe(bench.ctx()), 'describe')
    assert.deepEqual(again, info, 'what it can do does not change from call to call')
  },

  'reads fresh members as ready, serving and without work': async (bench) => {
    const { members } = bench.harness
    assert.ok(members.length >= 2, 'the harness has two members')
    for (const ref of members) {
      const reading = await bench.until(`${formatRef(ref)} serves`, async () => {
        const found = await bench.present(ref)
        return found.serves ? found : undefined
      })
      assert.equal(reading.own, 'ready')
      assert.equal(reading.inherited ?? 'ready', 'ready')
      assert.ok(['up', 'unchecked', 'unknown'].includes(reading.health), 'it is not down')
      assert.ok(reading.identity.length > 0, 'it has an identity')
      assertSame(work(reading), 0, 'it holds no work')
    }
  },

  'answers for every member asked for, and with all of them for "all"': async (bench) => {
    const { members } = bench.harness
    for (const refs of [members, 'all'] as const) {
      const snapshot = await bench.observe(refs)
      for (const ref of members) assert.ok(readingOf(snapshot, ref).present, formatRef(ref))
    }
    const identities = new Set<string>()
    for (const ref of members) identities.add((await bench.present(ref)).identity)
    assertSame(identities.size, members.length, 'no two members have one identity')
  },

  'reads unknown members and pools as absent, without a throw': async (bench) => {
    const nobody = { pool: bench.pool, member: 'drainable-nobody' }
    const nowhere = { pool: 'drainable-nowhere', member: bench.a.member }
    const snapshot = await bench.observe([nobody, bench.a, nowhere])
    assert.equal(readingOf(snapshot, nobody).present, false)
    assert.equal(readingOf(snapshot, nowhere).present, false)
    assert.equal(readingOf(snapshot, bench.a).present, true)
    assert.deepEqual((await bench.observe([nobody])).readings.length, 1)
    assert.deepEqual((await bench.observe([nowhere])).readings.length, 1)
  },

  'accepts no refs, and the same ref twice': async (bench) => {
    assert.deepEqual((await bench.observe([])).readings, [])
    const twice = await bench.observe([bench.a, bench.b, bench.a])
    const found = twice.readings.filter((r) => refKey(r.ref) === refKey(bench.a))
    assert.ok(found.length >= 1 && found.every((r) => r.present), 'the repeated ref is answered')
    assert.equal(readingOf(twice, bench.b).present, true)
  },

  'needs one or few requests however many members are asked for': async (bench) => {
    const { requests, members } = bench.harness
    await bench.observe(members)
    assert.ok(requests() > 0, 'the harness counts the requests that the product gets')
    const cost = async (refs: readonly MemberRef[]): Promise<number> => {
      const before = requests()
      await bench.observe(refs)
      return requests() - before
    }
    const many: MemberRef[] = [...members]
    for (let i = 0; i < 60; i++) many.push({ pool: bench.pool, member: `drainable-nobody-${i}` })
    // The least of several: a look whose numbers moved between two answers asks again, on a busy machine often.
    let [one, all] = [Infinity, Infinity]
    for (let i = 0; i < 10 && (i < 3 || all > one + 8); i += 1) {
      one = Math.min(one, await cost([bench.a]))
      all = Math.min(all, await cost(many))
    }
    assert.ok(all <= one + 8, `${many.length} refs take ${all} requests, one ref takes ${one}`)
  },

  'describes each scope, with honest numbers': async (bench) => {
    for (const ref of bench.harness.members) {
      const { scopes } = await bench.present(ref)
      if (bench.counts) assert.ok(scopes.length > 0, `${formatRef(ref)} has a scope`)
      assertSame(byName(scopes).size, scopes.length, 'no scope is listed twice')
      for (const scope of scopes) assertScope(scope)
    }
  },

  'takes the time from the clock it is given, not later than the numbers': async (bench) => {
    const { freshness } = bench.capabilities
    await bench.present(bench.a)
    const before = bench.now()
    const first = await bench.present(bench.a)
    const after = bench.now()
    const second = await bench.present(bench.a)
    for (const { scope, sampledAt } of first.scopes) {
      assert.ok(sampledAt <= after, `${scope}: sampled before the answer was there`)
      const oldest = before - freshness - bench.scaled(1_000)
      assert.ok(sampledAt >= oldest, `${scope}: sampled lately, by the clock of the call`)
      const later = byName(second.scopes).get(scope)
      assert.ok(later && later.sampledAt >= sampledAt, `${scope}: time does not go back`)
    }
  },

  'keeps identity, scopes and incarnations from look to look': async (bench) => {
    const first = await bench.present(bench.a)
    await bench.hold(bench.a)
    const held = await bench.present(bench.a)
    assertSame(held.identity, first.identity, 'a held member is the same member')
    for (const scope of first.scopes) {
      const later = byName(held.scopes).get(scope.scope)
      assert.ok(later, `the scope ${scope.scope} is still listed`)
      assertSame(later.incarnation, scope.incarnation, 'nothing was started again')
    }
  },

  'counts the serving members of the pool': async (bench) => {
    const total = bench.harness.members.length
    const before = await bench.until('every member serves', async () => {
      const pool = await bench.pools()
      return pool.serving >= total ? pool : undefined
    })
    assert.ok(before.total >= total, 'the total counts every member')
    const whenNone = ['refuse', 'spill', 'all', 'unknown']
    assert.ok(
      whenNone.includes(before.whenNone),
      `whenNone of a pool is one of ${whenNone.join(', ')}`,
    )
    await bench.hold(bench.a)
    await bench.until('one fewer serves', async () => {
      const pool = await bench.pools()
      return pool.serving === before.serving - 1 || undefined
    })
    assertSame((await bench.present(bench.a)).serves, false, 'a held member does not serve')
    assertSame((await bench.present(bench.b)).serves, true, 'the other one does')
    assertSame((await bench.pools()).total, before.total, 'a held member is still in the pool')
  },

  'lets no name become a command': async (bench) => {
    for (const member of HOSTILE) {
      const ref = { pool: bench.pool, member }
      assertSame((await bench.read(ref)).present, false, JSON.stringify(member.slice(0, 40)))
      if (member !== '') {
        const pool = { pool: member, member: bench.a.member }
        assertSame((await bench.read(pool)).present, false, 'as the name of a pool too')
      }
    }
    for (const member of HOSTILE) {
      const ref = { pool: bench.pool, member }
      await bench.refusesAbsent({ kind: 'hold', ref, to: bench.level })
    }
    for (const ref of bench.harness.members) {
      assertSame((await bench.present(ref)).own, 'ready', `${formatRef(ref)} is untouched`)
    }
  },
}

function assertScope(scope: LoadScope): void {
  const name = `scope ${scope.scope}`
  assert.ok(scope.scope.length > 0 && scope.incarnation.length > 0, 'a scope has its two names')
  assert.ok(['read', 'unread', 'ended'].includes(scope.state), `${name}: state`)
  for (const key of ['active', 'queued', 'pooled', 'arrivals'] as const) {
    const count = scope[key] ?? 0
    assert.ok(Number.isSafeInteger(count) && count >= 0, `${name}: ${key} is a count`)
  }
  assert.ok(Number.isFinite(scope.sampledAt), `${name}: it says when it was sampled`)
  const { admin = 'unknown', inForce = true, open = true } = scope
  assert.ok(['ready', 'drain', 'maint', 'unknown'].includes(admin), `${name}: admin is a state`)
  for (const word of [inForce, open])
    assertSame(typeof word, 'boolean', `${name}: inForce and open are true or false`)
}
