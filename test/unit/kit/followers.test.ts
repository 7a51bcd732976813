/** Servers of HAProxy that take the state of a drained one too: through both of its adapters. */
import { plan, startDrain, type DrainableProvider } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake as startRuntime } from 'drainable/testing/haproxy-runtime'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/dataplane.js'

interface Product extends AsyncDisposable {
  readonly lb: DrainableProvider & AsyncDisposable
  readonly occupy: (ref: typeof WEB1) => Promise<() => Promise<void>>
}

const WEB1 = { pool: 'web', member: 'web1' }
const pools = {
  web: [{ name: 'web1', check: true }, 'web2'],
  api: [{ name: 'api1', track: 'web/web1' }, 'api2'],
}

async function runtime(): Promise<Product> {
  const fake = await startRuntime({ pools, master: true })
  const lb = haproxyRuntime({ socket: fake.socket, master: fake.master })
  return productOf(lb, fake)
}

async function dataplane(): Promise<Product> {
  const fake = await startDataplane({ pools })
  const lb = haproxyDataplane({ url: fake.url, username: 'admin', password: 'secret' })
  return productOf(lb, fake)
}

function productOf(
  lb: Product['lb'],
  fake: Pick<Product, 'occupy'> & { close: () => Promise<void> },
): Product {
  return {
    lb,
    occupy: (ref) => fake.occupy(ref),
    async [Symbol.asyncDispose]() {
      await lb[Symbol.asyncDispose]()
      await fake.close()
    },
  }
}

const PRODUCTS = [
  ['Runtime API', runtime],
  ['Data Plane API', dataplane],
] as const

describe.concurrent('a follower that takes the state too', () => {
  test.each(PRODUCTS)('is said by plan() over the %s', async (_, start) => {
    await using it = await start()
    const { notes } = await plan(it.lb, WEB1)
    expect(notes).toContainEqual('web/web1: api/api1 tracks it and takes its state too')
  })

  test.each(PRODUCTS)('is no reason in why() over the %s', async (_, start) => {
    await using it = await start()
    const end = await it.occupy(WEB1)
    await using drained = startDrain(it.lb, WEB1, { timeout: '30s' })
    await drained.inForce
    const texts = () => drained.why().map(({ text }) => text)
    await until('it waits', () => Promise.resolve(texts().includes('1 in flight')))
    expect(texts()).toEqual(['1 in flight'])
    await end()
    await drained.done
  })
})
