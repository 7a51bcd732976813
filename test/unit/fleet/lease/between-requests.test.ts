import { describe, expect, it } from 'vitest'
import { DrainableError, isDrainableError } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import {
  systemClock,
  type ChangeResult,
  type DrainableProvider,
  type MemberRef,
} from 'drainable/provider'
import * as citrix from 'drainable/testing/citrix-adc'
import * as f5 from 'drainable/testing/f5-bigip'
import * as dataplane from 'drainable/testing/haproxy-dataplane'
import * as runtime from 'drainable/testing/haproxy-runtime'
import { schedulerOf } from '../../../../src/core/balancer/look/scheduler.js'

const refused = new DrainableError('NOT_LEADER', 'the lease is over')

/** A balancer, three of its members, and how many changing requests have come to it. */
interface Bench {
  readonly lb: DrainableProvider
  readonly refs: readonly MemberRef[]
  readonly changes: () => number
}

const isChange = (line: string): boolean => /^(PUT|POST|PATCH|DELETE)|set server|state /.test(line)

describe('a call whose permit ends after its first request', () => {
  it('sends no second one to BIG-IP', async () => {
    const names = [1, 2, 3].map((n) => `10.0.0.${n}:80`)
    await using fake = await f5.startFake({ pools: { web: names }, tls: false })
    const { url, username, password } = fake
    await using lb = f5Bigip({ url, username, password })
    const refs = names.map((name) => ({ pool: '/Common/web', member: `/Common/${name}` }))
    const changes = () =>
      fake.requests.filter((one) => one.method !== 'GET' && !one.path.includes('/authn/')).length
    await sendsOne({ lb, refs, changes })
  })

  it('sends no second one to Citrix ADC', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `10.0.1.${n + 1}:80`)
    await using fake = await citrix.startFake({ pools: { web: names }, tls: false })
    await using lb = citrixAdc({ url: fake.url, username: 'admin', password: 'secret' })
    const refs = names.map((member) => ({ pool: 'web', member }))
    const changes = () =>
      fake.requests.filter((one) => one.method !== 'GET' && !/login/.test(one.path)).length
    await sendsOne({ lb, refs, changes })
  })

  it('sends no second one to the Data Plane API', async () => {
    const names = ['a', 'b', 'c']
    await using fake = await dataplane.startFake({ pools: { web: names } })
    const { url, username, password } = fake
    await using lb = haproxyDataplane({ url, username, password })
    const refs = names.map((member) => ({ pool: 'web', member }))
    const changes = () => fake.requests.filter((one) => one.method !== 'GET').length
    await sendsOne({ lb, refs, changes })
  })

  it('sends no second one to the Runtime API', async () => {
    const names = ['a', 'b', 'c']
    await using fake = await runtime.startFake({ pools: { web: names } })
    await using lb = haproxyRuntime({ socket: fake.socket })
    const refs = names.map((member) => ({ pool: 'web', member }))
    const changes = () => fake.requests.filter(({ line }) => isChange(line)).length
    await sendsOne({ lb, refs, changes })
  })
})

/** No timer fires meanwhile: the permit is judged by what the balancer has got. */
async function sendsOne({ lb, refs, changes }: Bench): Promise<void> {
  const scheduler = schedulerOf(lb, systemClock)
  const results: ChangeResult[] = []
  const { signal } = new AbortController()
  const holds = refs.map((ref) => ({ kind: 'hold' as const, to: 'drain' as const, ref }))
  await scheduler.send(
    holds,
    { leave: signal, giveUp: signal },
    (index, result) => (results[index] = result),
    () => (changes() > 0 ? refused : undefined),
  )
  expect(changes()).toBe(1)
  const open = results.filter(({ status }) => status !== 'applied')
  expect(open.length).toBeGreaterThan(0)
  for (const result of open) expect('error' in result && isDrainableError(result.error)).toBe(true)
}
