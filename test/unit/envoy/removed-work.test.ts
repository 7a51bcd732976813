import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { ctx, names, setOf } from './web-set.js'

const ref = { pool: 'web', member: names[0]! }

test('work of an unread proxy is not forgotten with the endpoint', async () => {
  await using fake = await startFake({ pools: { web: names } })
  let members: readonly string[] = names
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(members)),
    publish: () => Promise.resolve(),
  })
  await using other = await startFake({ pools: { web: names }, node: 'envoy-2' })
  await using lb = envoy({ endpoints: sink, admin: [fake.url, other.url] })
  await lb.observe([ref], ctx())
  await fake.occupy(ref)
  await lb.observe([ref], ctx())
  const recovers = fake.fail({ how: 'status' })
  const unread = await lb.observe([ref], ctx())
  expect(unread.readings[0]?.scopes.map(({ state }) => state)).toContain('unread')
  await recovers()
  members = names.slice(1)
  await fake.setBehind(ref, 'gone')
  await other.setBehind(ref, 'gone')
  const gone = await lb.observe([ref], ctx())
  expect(gone.readings[0]?.present).toBe(false)
  expect(gone.readings[0]?.scopes.find(({ scope }) => scope === fake.url)).toMatchObject({
    state: 'read',
    active: 1,
  })
})

test('without /stats calls are refused, and the path is named', async () => {
  await using fake = await startFake({
    pools: { web: names },
    allowPaths: ['/clusters', '/server_info', '/config_dump'],
  })
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(names)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  await expect(lb.observe([ref], ctx())).rejects.toMatchObject({
    code: 'FORBIDDEN',
    message: expect.stringMatching(/\/stats.*allow_paths/) as string,
  })
})
