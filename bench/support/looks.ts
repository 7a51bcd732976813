/** What looks at an appliance of 1,000 pools cost, against its stand-in. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { watch, type DrainableProvider } from 'drainable'
import type { MemberRef } from 'drainable/provider'
import { ioClock, type IoClock } from '../../test/support/io-clock.js'
import { Meter } from './traffic.js'

const POOLS = 1_000
const HOUR = 3_600_000

/** One product, and how it names things. */
export interface Device {
  /** Of how many pools a look is measured, beside 40 and all: what is read one by one, and the first that a list pays for. */
  readonly few: readonly number[]
  readonly pool: (i: number) => string
  readonly member: (address: string) => string
  readonly start: (options: {
    readonly pools: Readonly<Record<string, readonly string[]>>
    readonly latency?: number
    readonly clock?: IoClock['latency']
  }) => Promise<Fake>
  readonly connect: (login: Login) => DrainableProvider & AsyncDisposable
}

interface Login {
  readonly url: string
  readonly username: string
  readonly password: string
}

interface Fake extends Login, AsyncDisposable {
  readonly requests: readonly unknown[]
}

/** Prints what one look at some of 1,000 pools costs, in requests and bytes, and what an hour's watch of 50 members does. */
export async function measureLooks(device: Device): Promise<void> {
  console.table(await lookCosts(device))
  const watched: object[] = []
  for (const spread of [1, 50]) watched.push(await watchCost(device, spread))
  console.table(watched)
}

async function lookCosts({ few, pool, member, start, connect }: Device): Promise<object[]> {
  const looks: object[] = []
  const pools = Object.fromEntries(
    Array.from({ length: POOLS }, (_, i) => [pool(i), ['10.0.0.1:80', '10.0.0.2:80']]),
  )
  await using fake = await start({ pools })
  using meter = new Meter()
  const { url, username, password } = fake
  for (const count of [...few, 40, POOLS]) {
    using clock = ioClock()
    await using lb = connect({ url, username, password })
    const refs = Array.from({ length: count }, (_, i) => ({
      pool: pool(i),
      member: member('10.0.0.1:80'),
    }))
    const look = (): Promise<unknown> => {
      const { signal } = new AbortController()
      return clock.run(lb.observe(refs, { clock, signal }))
    }
    const first = await meter.of(look)
    await meter.of(look)
    const third = await meter.of(look)
    looks.push({
      pools: count,
      'first look: requests': first.requests,
      'first: bytes': first.bytes,
      'a later look: requests': third.requests,
      'a later one: bytes': third.bytes,
    })
  }
  return looks
}

async function watchCost(
  { pool, member, start, connect }: Device,
  spread: number,
): Promise<object> {
  using clock = ioClock()
  const pools = Object.fromEntries(
    Array.from({ length: spread }, (_, i) => [
      pool(i),
      Array.from({ length: 50 / spread }, (__, k) => `10.0.${i}.${k + 1}:80`),
    ]),
  )
  await using fake = await start({ pools, latency: 50, clock: clock.latency })
  const { url, username, password } = fake
  await using lb = connect({ url, username, password })
  const refs: MemberRef[] = Object.entries(pools).flatMap(([name, addresses]) =>
    addresses.map((address) => ({ pool: name, member: member(address) })),
  )
  const end = new AbortController()
  const view = watch(lb, refs, { clock, signal: end.signal })
  await clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, HOUR)))
  const row = {
    pools: spread,
    members: refs.length,
    'requests in an hour': fake.requests.length,
  }
  end.abort()
  await nextTurn()
  await clock.run(Promise.resolve(view.done).catch(() => undefined))
  return row
}
