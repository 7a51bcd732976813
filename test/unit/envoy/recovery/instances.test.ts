import { describe, expect, test } from 'vitest'
import { combineProviders, drain, type Ticket } from 'drainable'
import { callbackEndpoints, envoy, observedEndpoints } from 'drainable/envoy'
import { startFake, type EnvoyFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })
const A = '10.0.0.1:80'
const ref = { pool: 'web', member: A }
const setOf = (...addresses: readonly string[]) => ({
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: addresses.map((address) => ({
        endpoint: { address: { socket_address: { address, port_value: 80 } } },
      })),
    },
  ],
})

/** A fleet whose control plane is a function. */
function fleetOf(fake: EnvoyFake, instance?: string) {
  let set: unknown = setOf('10.0.0.1', '10.0.0.2')
  return envoy({
    endpoints: callbackEndpoints({
      load: () => Promise.resolve(set),
      publish: async (next) => {
        set = next
        await fake.setBehind(ref, 'drain')
      },
      instance,
    }),
    admin: [fake.url],
  })
}

const pools = { web: [A, '10.0.0.2:80'] }

describe('two callback fleets of one process', () => {
  test('without names are refused with the second one', async () => {
    await using a = await startFake({ pools })
    await using b = await startFake({ pools })
    await using one = fleetOf(a)
    await using two = fleetOf(b)
    await one.describe(ctx())
    await one.observe([ref], ctx())
    await two.describe(ctx())
    await expect(two.observe([ref], ctx())).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringMatching(/instance 'callback' too.*an instance of its own/) as string,
    })
    await expect(drain(two, ref, { timeout: '5s' })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await one.observe([ref], ctx())
    await one.close()
    await two.observe([ref], ctx())
  })

  test('with names are two balancers with tickets of their own', async () => {
    await using a = await startFake({ pools })
    await using b = await startFake({ pools })
    await using one = fleetOf(a, 'eu')
    await using two = fleetOf(b, 'us')
    const tickets: Ticket[] = []
    const keep = (ticket: Ticket) => void tickets.push(ticket)
    await drain(one, ref, { timeout: '50s', onTicket: keep })
    await drain(two, ref, { timeout: '50s' })
    expect([one.instance, two.instance]).toEqual(['callback:eu', 'callback:us'])
    expect(tickets[0]?.parts.map(({ instance }) => instance)).toEqual(['callback:eu'])
  })

  test('of one fleet may share its name', async () => {
    await using a = await startFake({ pools })
    await using b = await startFake({ pools, node: 'two' })
    const of = (admin: readonly string[]) =>
      envoy({
        endpoints: callbackEndpoints({
          load: () => Promise.resolve(setOf('10.0.0.1')),
          publish: () => Promise.resolve(),
        }),
        admin,
      })
    await using one = of([a.url])
    await using two = of([b.url, a.url])
    for (const lb of [one, two, one, two]) await lb.observe([ref], ctx())
  })
})

test('two observed fleets are combined by their names', async () => {
  await using a = await startFake({ pools })
  await using b = await startFake({ pools })
  const of = (fake: EnvoyFake, instance: string) =>
    envoy({ endpoints: observedEndpoints({ instance }), admin: [fake.url] })
  await using lb = combineProviders({ eu: of(a, 'eu'), us: of(b, 'us') })
  const refs = ['eu', 'us'].map((balancer) => ({ ...ref, balancer }))
  const { readings } = await lb.observe(refs, ctx())
  expect(readings.map(({ present }) => present)).toEqual([true, true])
  expect(() => observedEndpoints({ instance: '' })).toThrow('instance')
})
