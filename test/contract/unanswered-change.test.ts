/** A change without an answer does not hold up the looks beside it: work on its member is seen at once. */
import { citrixAdc } from 'drainable/citrix-adc'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { envoyListener } from 'drainable/envoy-listener'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { CallContext, DrainableProvider, MemberRef } from 'drainable/provider'
import type { ProtocolFake } from 'drainable/testing'
import * as citrix from 'drainable/testing/citrix-adc'
import * as envoyFake from 'drainable/testing/envoy'
import * as listener from 'drainable/testing/envoy-listener'
import * as f5 from 'drainable/testing/f5-bigip'
import * as dataplane from 'drainable/testing/haproxy-dataplane'
import * as runtime from 'drainable/testing/haproxy-runtime'
import { expect, test } from 'vitest'
import { adapterNames } from '../../scripts/package/entries.ts'
import { systemClock } from '../../src/provider/clock.js'
import { until } from '../support/wait.js'

interface Subject {
  readonly fake: ProtocolFake
  readonly lb: DrainableProvider
  readonly ref: MemberRef
  /** Changes get no answer from now on. */
  readonly swallow: () => unknown
}

/** For a loaded machine, in milliseconds; the change itself would wait for longer. */
const SOON = 6_000

const SUBJECTS: Readonly<Record<string, () => Promise<Subject>>> = {
  'citrix-adc': async () => {
    const fake = await citrix.startFake({ pools: { web: ['web1:80', 'web2:80'] }, tick: 20 })
    const { url, username, password, ca } = fake
    const lb = citrixAdc({ url, username, password, freshness: '50ms', ...(ca && { tls: { ca } }) })
    const swallow = () => fake.fail({ match: /action=disable/, how: 'silent' })
    return { fake, lb, ref: { pool: 'web', member: 'web1:80' }, swallow }
  },
  envoy: async () => {
    const address = { address: '10.0.0.1', port_value: 80 }
    const endpoint = { endpoint: { address: { socket_address: address } } }
    const set = { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] }
    const fake = await envoyFake.startFake({ pools: { web: ['10.0.0.1:80'] } })
    const lb = envoy({
      onPanic: 'allow',
      endpoints: callbackEndpoints({
        instance: fake.url,
        load: () => Promise.resolve([set]),
        publish: () => new Promise(() => undefined),
      }),
      admin: [fake.url],
    })
    return { fake, lb, ref: { pool: 'web', member: '10.0.0.1:80' }, swallow: () => undefined }
  },
  'envoy-listener': async () => {
    const fake = await listener.startFake()
    const swallow = () => fake.fail({ match: /^POST /, how: 'silent' })
    const lb = envoyListener({ admin: [fake.url] })
    return { fake, lb, ref: { pool: 'envoy', member: fake.member }, swallow }
  },
  'f5-bigip': async () => {
    const fake = await f5.startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
    const { url, username, password, ca } = fake
    const lb = f5Bigip({
      url,
      username,
      password,
      freshness: 10,
      minInterval: 20,
      ...(ca && { tls: { ca } }),
    })
    const swallow = () => fake.fail({ match: /^PATCH /, how: 'silent' })
    return { fake, lb, ref: { pool: '/Common/web', member: '/Common/10.0.0.1:80' }, swallow }
  },
  'haproxy-dataplane': async () => {
    const fake = await dataplane.startFake({ pools: { web: ['web1', 'web2'] } })
    const { url, username, password } = fake
    const lb = haproxyDataplane({ url, username, password })
    const swallow = () => fake.fail({ match: /^PUT /, how: 'silent' })
    return { fake, lb, ref: { pool: 'web', member: 'web1' }, swallow }
  },
  'haproxy-runtime': async () => {
    const fake = await runtime.startFake({ pools: { web: ['web1', 'web2'] } })
    const swallow = () => fake.fail({ match: /^set server/, how: 'silent' })
    const lb = haproxyRuntime({ socket: fake.socket })
    return { fake, lb, ref: { pool: 'web', member: 'web1' }, swallow }
  },
}

test('every adapter is looked through beside an unanswered change', () => {
  expect(Object.keys(SUBJECTS).sort()).toEqual([...adapterNames()].sort())
})

test.concurrent.each(Object.entries(SUBJECTS))(
  '%s shows work while a change has no answer',
  async (_, open) => {
    const { fake, lb, ref, swallow } = await open()
    const stop = new AbortController()
    const ctx: CallContext = { signal: stop.signal, clock: systemClock }
    const active = async (): Promise<number> => {
      const [reading] = (await lb.observe([ref], ctx)).readings
      return (reading?.scopes ?? []).reduce((sum, scope) => sum + scope.active, 0)
    }
    try {
      await lb.describe(ctx)
      expect(await active()).toBe(0)
      swallow()
      let answered = false
      const changed = lb
        .apply([{ kind: 'hold', to: 'drain', ref }], ctx)
        .catch(() => undefined)
        .then(() => (answered = true))
      const end = await fake.occupy(ref)
      await until(async () => (await active()) > 0, 'the work', SOON)
      expect(answered).toBe(false)
      await end()
      stop.abort(new Error('the test is over'))
      await changed
    } finally {
      stop.abort()
      await lb.close()
      await fake.close()
    }
  },
)
