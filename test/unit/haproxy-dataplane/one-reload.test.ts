import { reconcile, type DesiredMember, type Reconciler } from 'drainable'
import { expect, test } from 'vitest'
import { context, rig, until } from '../../support/dataplane.js'

const POOLS = ['web', 'api', 'admin']
const OPTIONS = { pools: POOLS, owns: () => true, settle: '50ms' } as const

/** Three pools with the same two machines, on an API where each removal reloads the balancer. */
async function machines() {
  const pools = Object.fromEntries(POOLS.map((pool) => [pool, ['web1', 'web2']]))
  const of = await rig({ pools, reloadDelay: 0 }, { membership: 'configuration' })
  const reloads = (): number =>
    of.fake.requests.filter(({ line }) => /^PUT .*transactions/.test(line)).length
  return Object.assign(of, { reloads })
}

/** A set with these members, and all of them without `web1`. */
function without(...gone: readonly string[]): DesiredMember[] {
  return POOLS.flatMap((pool) =>
    ['web1', 'web2']
      .filter((member) => member === 'web2' || !gone.includes(pool))
      .map((member) => ({ pool, member, state: 'serve' as const })),
  )
}

const idle = (loop: Reconciler, count: number): Promise<boolean> =>
  until(`${count} are idle`, async () => {
    return loop.status().filter(({ phase }) => phase === 'idle').length === count
  })

test('a loop takes a machine out of its pools in one reload', async () => {
  await using r = await machines()
  const end = await r.fake.occupy({ pool: 'api', member: 'web1' })
  await using loop = reconcile(r.lb, OPTIONS)
  loop.set(without(...POOLS))
  await idle(loop, 2)
  await end()
  expect(await loop.settled()).toEqual([])
  expect(r.reloads()).toBe(1)
})

test('a machine that leaves one pool after the other goes in one reload', async () => {
  await using r = await machines()
  const end = await r.fake.occupy({ pool: 'api', member: 'web1' })
  await using loop = reconcile(r.lb, OPTIONS)
  loop.set(without('web', 'api'))
  await idle(loop, 1)
  loop.set(without(...POOLS))
  await idle(loop, 2)
  await end()
  expect(await loop.settled()).toEqual([])
  expect(r.reloads()).toBe(1)
})

test('a member whose endpoint returns in mid-drain serves, and the others go', async () => {
  await using r = await machines()
  const end = await r.fake.occupy({ pool: 'api', member: 'web1' })
  await using loop = reconcile(r.lb, OPTIONS)
  loop.set(without(...POOLS))
  await idle(loop, 2)
  loop.set(without('web', 'api'))
  await until('it serves', async () => loop.status().length === 2)
  await end()
  expect(await loop.settled()).toEqual([])
  expect(r.reloads()).toBe(1)
  const { readings } = await r.lb.observe('all', context())
  const serving = readings.filter((one) => one.present && one.own === 'ready')
  expect(serving.map(({ ref }) => `${ref.pool}/${ref.member}`).sort()).toEqual([
    'admin/web1',
    'admin/web2',
    'api/web2',
    'web/web2',
  ])
})

test('an idle member waits for a busy one until the first deadline', async () => {
  await using r = await machines()
  await r.fake.occupy({ pool: 'api', member: 'web1' })
  await using loop = reconcile(r.lb, { ...OPTIONS, timeout: '8s' })
  loop.set(without(...POOLS))
  await idle(loop, 2)
  const rows = await loop.settled()
  expect(rows).toMatchObject([{ ref: { pool: 'api' }, pastDeadline: true }])
  expect(r.reloads()).toBe(1)
})
