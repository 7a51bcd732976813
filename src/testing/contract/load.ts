import assert from 'node:assert/strict'
import type { MemberRef, PresentReading } from '../../provider/contract.js'
import { assertSame, assertWork, byName, work } from './bench.js'
import type { Bench } from './bench.js'

/** What the counts owe. A provider without counts owes that it invents none. */
export const load: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'counts work while it lasts, and no longer': async (bench) => {
    if (!bench.counts) return assertNoCounts(bench)
    const { a, b } = bench
    const end = await bench.occupy(a)
    const second = await bench.occupy(a)
    await bench.untilReading(a, 'both requests are counted', (r) => work(r) >= 2)
    assertSame(work(await bench.read(b)), 0, 'the other member has nothing to do')
    await end()
    await bench.untilReading(a, 'one request is left', (r) => work(r) === 1)
    await bench.stays('it goes on', async () => work(await bench.read(a)) === 1)
    await second()
    await bench.untilReading(a, 'nothing is left', (r) => work(r) === 0)
  },

  'shows by its arrivals that work came and went': async (bench) => {
    if (!bench.counts) return assertNoCounts(bench)
    const { a } = bench
    const before = await bench.present(a)
    const end = await bench.occupy(a)
    await end()
    await bench.untilReading(a, 'nothing is left', (r) => work(r) === 0)
    if (before.scopes.some((scope) => scope.arrivals === undefined)) {
      return bench.skip('its scopes tell no arrivals')
    }
    await bench.untilReading(a, 'an arrival is counted', ({ scopes }) =>
      scopes.some(({ scope, arrivals }) => arrivals !== byName(before.scopes).get(scope)?.arrivals),
    )
  },

  'keeps counting, and keeps the work, under drain': async (bench) => {
    if (!bench.levels.includes('drain')) return bench.skip('its ladder has no drain')
    if (!bench.counts) return assertNoCounts(bench)
    await keepsWork(bench, 'drain')
  },

  'keeps counting, and keeps the work, under a maint that it calls gentle': async (bench) => {
    if (!bench.counts) return bench.skip('it counts nothing')
    const { maint = bench.capabilities.maint } = await bench.present(bench.a)
    if (maint !== 'gentle') return bench.skip('it calls no maint gentle')
    await keepsWork(bench, 'maint')
  },

  'lists a scope that held work until it has ended, through a reload too': async (bench) => {
    if (!bench.counts) return assertNoCounts(bench)
    const { a } = bench
    const end = await bench.occupy(a)
    const busy = bench.level === 'drain' ? await bench.hold(a) : await bench.present(a)
    const open = new Set(busy.scopes.filter((s) => s.active + s.queued > 0).map((s) => s.scope))
    assert.ok(open.size > 0, 'some scope holds the request')
    await bench.harness.reload?.()
    await bench.stays('no scope vanishes that was never said to have ended', async () => {
      const listed = byName((await bench.read(a)).scopes)
      const vanished = [...open].some((scope) => !listed.has(scope))
      for (const scope of open) if (listed.get(scope)?.state === 'ended') open.delete(scope)
      return !vanished
    })
    await end()
  },

  'keeps counting for a member through its restore': async (bench) => {
    if (!bench.counts) return assertNoCounts(bench)
    const { a, level } = bench
    if (level !== 'drain') return bench.skip('its ladder has no drain')
    const { native } = await bench.present(a)
    const end = await bench.occupy(a)
    await bench.hold(a)
    const before = native === undefined ? {} : { native }
    await bench.done({ kind: 'restore', ref: a, expect: level, to: 'ready', ...before })
    const restored = await bench.untilOwn(a, 'ready')
    assertWork(restored, 'the work of before is still counted')
    await end()
    await bench.untilReading(a, 'nothing is left', (r) => work(r) === 0)
  },
}

async function keepsWork(bench: Bench, to: 'drain' | 'maint'): Promise<void> {
  const { a } = bench
  const end = await bench.occupy(a)
  const held = await bench.hold(a, to)
  assertWork(held, `the request is still counted in ${to}`)
  await bench.stays(`${to} keeps the request`, async () => work(await bench.read(a)) > 0)
  await end()
  await bench.untilReading(a, 'nothing is left', (r) => work(r) === 0)
  assert.equal((await bench.present(a)).own, to)
}

/** Counts nothing: so it claims nothing, and gives its own word (`released`) only of a held member. */
async function assertNoCounts(bench: Bench): Promise<void> {
  const none = (ref: MemberRef, { scopes }: PresentReading): void => {
    for (const scope of scopes) {
      assertSame(scope.active, 0, `${ref.member}: no count is invented`)
      assertSame(scope.queued, 0, `${ref.member}: no count is invented`)
    }
  }
  const fresh = await bench.present(bench.a)
  none(bench.a, fresh)
  assert.ok(!fresh.scopes.some(({ released }) => released), 'a ready member is not released')
  none(bench.a, await bench.hold(bench.a))
}
