/** What a watch of an appliance costs where nothing happens, and how soon it tells of a change: the rule is kit/look-cost's. */
import { watch, type DrainableProvider, type DrainEvent } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../support/io-clock.js'

const MEMBERS = Array.from({ length: 50 }, (_, i) => `10.0.0.${i + 1}:80`)

interface Device {
  readonly pool: string
  readonly member: string
  readonly start: typeof startBigip | typeof startCitrix
  readonly connect: (options: {
    url: string
    username: string
    password: string
  }) => DrainableProvider
}

const DEVICES: readonly (readonly [string, Device])[] = [
  [
    'BIG-IP',
    {
      pool: '/Common/web',
      member: '/Common/10.0.0.7:80',
      start: startBigip,
      connect: f5Bigip,
    },
  ],
  [
    'Citrix ADC',
    {
      pool: 'web',
      member: '10.0.0.7:80',
      start: startCitrix,
      connect: citrixAdc,
    },
  ],
]

const pass = (clock: IoClock, ms: number): Promise<void> =>
  clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, ms)))

/** A watch of all 50 members, and when it told of such an event. */
async function watched(
  { pool, start, connect }: Device,
  clock: IoClock,
  type: DrainEvent['type'],
  pools: Readonly<Record<string, string[]>> = { [pool]: MEMBERS },
) {
  const fake = await start({ pools, tls: false, latency: 30, clock: clock.latency })
  const { url, username, password } = fake
  const lb = connect({ url, username, password })
  const end = new AbortController()
  const told: number[] = []
  const onEvent = (event: DrainEvent): void => {
    if (event.type === type) told.push(clock.now())
  }
  const wanted = Object.entries(pools).flatMap(([name, members]) =>
    members.map((member) => ({ pool: name, member })),
  )
  const view = watch(lb, wanted, { clock, signal: end.signal, onEvent })
  return {
    fake,
    told,
    async [Symbol.asyncDispose]() {
      end.abort()
      await clock.run(Promise.resolve(view.done).catch(() => undefined))
      await lb.close()
      await fake.close()
    },
  }
}

test.each(DEVICES)(
  'a watch of 50 members of a %s costs little where nothing happens, and tells soon',
  async (_, device) => {
    using clock = ioClock()
    await using of = await watched(device, clock, 'phase')
    const { fake, told } = of
    await pass(clock, 600_000)
    const quiet = fake.requests.length
    expect(quiet).toBeLessThan(270)
    const changed = clock.now()
    await fake.setBehind(device, 'drain')
    await pass(clock, 10_000)
    expect(told[0]! - changed).toBeLessThanOrEqual(10_000)
    const before = fake.requests.length
    await pass(clock, 20_000)
    expect(fake.requests.length - before).toBeGreaterThan(20)
  },
)

test.each(DEVICES)('a watch of members of a %s tells soon of a removal', async (_, device) => {
  using clock = ioClock()
  await using of = await watched(device, clock, 'removed')
  const { fake, told } = of
  await pass(clock, 60_000)
  // A removal right after a look waits longest.
  const looks = fake.requests.length
  while (fake.requests.length === looks) await pass(clock, 10)
  await pass(clock, 130)
  const changed = clock.now()
  await fake.setBehind(device, 'gone')
  await pass(clock, 30_000)
  expect(told).toHaveLength(1)
  expect(told[0]! - changed).toBeLessThanOrEqual(10_000)
})

test.each(DEVICES)(
  'an hour of watching 50 members in five pools of a %s is fewer than 1,600 requests',
  async (_, device) => {
    using clock = ioClock()
    const five = Array.from({ length: 5 }, (_pool, i) => i)
    const pools = five.map((i) => [`${device.pool}${i}`, MEMBERS.slice(10 * i, 10 * i + 10)])
    const given = Object.fromEntries(pools) as Record<string, string[]>
    await using of = await watched(device, clock, 'phase', given)
    await pass(clock, 3_600_000)
    expect(of.fake.requests.length).toBeLessThan(1_600)
  },
)
