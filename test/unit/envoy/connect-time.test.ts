import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { ctx, names, setOf } from './web-set.js'

test('connects hide requests while the version of one proxy is unknown', async () => {
  await using fake = await startFake({ pools: { web: names } })
  await using old = await startFake({ pools: { web: names }, version: '1.38.3', node: 'envoy-2' })
  old.fail({ how: 'status' })
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(names)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url, old.url] })
  expect((await lb.describe(ctx())).capabilities.blind).toBe(5_100)
})

test.each([
  ['shorter than the default', '1.38.3', 800, 900],
  ['longer than the default', '1.38.3', 20_000, 20_100],
  ['counted from 1.39.3 on', '1.39.3', 20_000, 0],
])(
  'a connect hides a request for as long as the proxies say: %s',
  async (_, version, own, blind) => {
    await using fake = await startFake({ pools: { web: names }, version, connectTimeout: own })
    const sink = callbackEndpoints({
      load: () => Promise.resolve(setOf(names)),
      publish: () => Promise.resolve(),
    })
    await using lb = envoy({ endpoints: sink, admin: [fake.url], connectTimeout: '3s' })
    expect((await lb.describe(ctx())).capabilities.blind).toBe(blind)
  },
)
