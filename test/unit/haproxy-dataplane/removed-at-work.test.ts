import { drain } from 'drainable'
import { expect, test } from 'vitest'
import { context, look, present, rig, until } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const AT_ONCE = { timeout: '3s', settle: '50ms', until: 'removed', onTimeout: 'remove' } as const

test('a removal in the configuration leaves the work to the old worker', async () => {
  await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
  await r.fake.occupy(WEB1)
  const { members } = await drain(r.lb, WEB1, AT_ONCE)
  expect(members[0]).toMatchObject({ outcome: 'removed', verifiedIdle: false, terminated: 0 })
  // Counted before the removal: this API shows nothing of the worker that the reload has replaced.
  expect(members[0]?.why[0]?.text).toContain(
    'taken out at the deadline, before it was proved idle: 1 in flight left to end by themselves',
  )
  expect((await look(r.lb, WEB1)).present).toBe(false)
})

test('at run time onTimeout: remove is refused where nothing can be cut', async () => {
  await using r = await rig({}, { maintCuts: false })
  await expect(drain(r.lb, WEB1, AT_ONCE)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining("onTimeout: 'remove': this balancer removes no") as string,
  })
  expect((await present(r.lb, WEB1)).own).toBe('ready')
})

test('members of one call that get idle one after the other share a reload', async () => {
  const pools = { web: ['web1', 'web2'], api: ['web1', 'web2'] }
  await using r = await rig({ pools, reloadDelay: 0 }, { membership: 'configuration' })
  const end = await r.fake.occupy({ pool: 'api', member: 'web1' })
  const targets = ['web', 'api'].map((pool) => ({ pool, member: 'web1' }))
  const idle = Promise.withResolvers<undefined>()
  const onEvent = ({ type }: { readonly type: string }): void => {
    if (type === 'idle') idle.resolve(undefined)
  }
  const drained = drain(r.lb, targets, { settle: '50ms', until: 'removed', onEvent })
  await idle.promise
  await end()
  expect((await drained).outcome).toBe('removed')
  const commits = r.fake.requests.filter(({ line }) => /^PUT .*transactions/.test(line))
  expect(commits).toHaveLength(1)
})

test('an awaited process does not end with its absent member', async () => {
  await using r = await rig()
  const { clock, signal } = context()
  let later = 0
  const ahead = { signal, clock: { ...clock, now: () => clock.now() + later } }
  const gone = { pool: 'web', member: 'gone' }
  await r.lb.observe([gone], ahead)
  await r.fake.reload()
  const states = async (): Promise<readonly string[]> => {
    const { readings } = await r.lb.observe([gone], ahead)
    return readings[0]!.scopes.map(({ state }) => state)
  }
  await until('the new process answers', async () => (await states()).includes('unread'))
  later = 61_000
  expect(await states()).toEqual([])
})
