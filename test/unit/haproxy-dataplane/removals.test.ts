import type { ChangeResult, MemberRef } from 'drainable/provider'
import type { DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, context, look, present, rig } from '../../support/dataplane.js'

const POOLS = { web: ['a', 'b'], api: ['a', 'b'], admin: ['a', 'b'] }
const A = ['web', 'api', 'admin'].map((pool) => ({ pool, member: 'a' }))
const FILE = { membership: 'configuration' } as const
const COMMIT = /^PUT .*transactions/

const removals = (refs: readonly MemberRef[]) =>
  refs.map((ref) => ({ kind: 'remove', ref }) as const)
const statuses = (results: readonly ChangeResult[]): string[] => results.map(({ status }) => status)
const all = (status: string): string[] => A.map(() => status)

/** The ids of reloads by what became of them: `0` is the first, and of those that succeeded the last is told. */
async function reloads({ url }: DataplaneFake, version: string): Promise<string[]> {
  const tree = version.startsWith('2') ? 'v2' : 'v3'
  const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`
  const path = `${url}/${tree}/services/haproxy/reloads`
  const list = (await (await fetch(path, { headers: { authorization } })).json()) as {
    readonly id: string
    readonly status: string
  }[]
  return list.map(({ id, status }) => `${id.split('-').at(-1) ?? ''} ${status}`)
}

/** Those that are open. */
async function transactions({ url }: DataplaneFake): Promise<unknown> {
  const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`
  const path = `${url}/v3/services/haproxy/transactions`
  return (await fetch(path, { headers: { authorization } })).json()
}

/** How many backends still have the line of server a in the file. */
const left = ({ config }: DataplaneFake): number => config.match(/server a /g)?.length ?? 0
const commits = ({ requests }: DataplaneFake): number =>
  requests.filter(({ line }) => COMMIT.test(line)).length

describe.concurrent.each(['2.9', '3.2', '3.4'])('removals of one call on %s', (version) => {
  const fake = { version, pools: POOLS, reloadDelay: 0 }

  test('share one transaction and one reload', async () => {
    await using r = await rig(fake, FILE)
    expect(statuses(await r.lb.apply(removals(A), context()))).toEqual(all('applied'))
    expect(await reloads(r.fake, version)).toEqual(['0 succeeded'])
    expect(left(r.fake)).toBe(0)
    for (const ref of A) expect((await look(r.lb, ref)).present).toBe(false)
  })

  test('are made anew where another writer came between', async () => {
    await using r = await rig(fake, FILE)
    r.fake.fail({ match: COMMIT, how: 'status', status: 406, times: 2 })
    expect(statuses(await r.lb.apply(removals(A), context()))).toEqual(all('applied'))
    expect(await reloads(r.fake, version)).toEqual(['0 succeeded'])
  })

  test('are followed to their end where the answer of the commit is lost', async () => {
    await using r = await rig(fake, FILE)
    r.fake.fail({ match: COMMIT, how: 'reset', execute: true, times: 1 })
    expect(statuses(await r.lb.apply(removals(A), context()))).toEqual(all('applied'))
    expect(commits(r.fake)).toBe(1)
    expect(await reloads(r.fake, version)).toEqual(['0 succeeded'])
  })

  test('do not wait for one that HAProxy refuses', async () => {
    const config = `defaults
backend web
  server a 127.0.0.1:1 check
  server b 127.0.0.1:2 track web/a
backend api
  server a 127.0.0.1:3
  server b 127.0.0.1:4
backend admin
  server a 127.0.0.1:5
  server b 127.0.0.1:6
`
    await using r = await rig({ version, config, reloadDelay: 0 }, FILE)
    const results = await r.lb.apply(removals(A), context())
    expect(statuses(results)).toEqual(['rejected', 'applied', 'applied'])
    expect((await present(r.lb, A[0]!)).own).toBe('ready')
  })

  test('take a server out that was added at run time beside them', async () => {
    await using r = await rig(fake, FILE)
    await r.fake.run('add server web/late 127.0.0.1:9000')
    const late = { pool: 'web', member: 'late' }
    const results = await r.lb.apply(removals([late, ...A]), context())
    expect(statuses(results.slice(1))).toEqual(all('applied'))
    expect(results[0]?.status).not.toBe('rejected')
    expect((await look(r.lb, late)).present).toBe(false)
  })

  test('leave no transaction open where one is not committed', async () => {
    await using r = await rig(fake, FILE)
    r.fake.fail({ match: /^DELETE .*configuration/, how: 'status', status: 403 })
    expect(statuses(await r.lb.apply(removals(A), context()))).toEqual(all('rejected'))
    expect(left(r.fake)).toBe(A.length)
    const ended = r.fake.requests.filter(({ line }) => /^DELETE .*transactions/.test(line))
    expect(ended).toHaveLength(1)
  })
})

test.each([
  ['a lost answer', { how: 'reset' }],
  ['a front that says 503', { how: 'status', status: 503 }],
] as const)('removals leave no transaction open after %s', async (_, failure) => {
  await using r = await rig({ pools: POOLS, reloadDelay: 0 }, FILE)
  r.fake.fail({ match: /^DELETE .*configuration/, ...failure })
  await r.lb.apply(removals(A), context())
  expect(await transactions(r.fake)).toEqual([])
})

test('one removal needs no transaction', async () => {
  await using r = await rig({ pools: POOLS, reloadDelay: 0 }, FILE)
  expect((await change(r.lb, removals(A)[0]!)).status).toBe('applied')
  expect(commits(r.fake)).toBe(0)
})

test('removals whose reload fails are all in the file, and said so', async () => {
  await using r = await rig({ pools: POOLS, reloadDelay: 0 }, FILE)
  r.fake.refuseReload('config: unknown keyword')
  const results = await r.lb.apply(removals(A), context())
  expect(statuses(results)).toEqual(all('rejected'))
  for (const result of results) {
    const { message } = (result as { error: Error }).error
    expect(message).toContain("rolled the file back, which still has it; it is 'no check'")
  }
  expect(left(r.fake)).toBe(A.length)
})
