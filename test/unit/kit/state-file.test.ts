/** A HAProxy whose reload opens what is drained, through both of its adapters. */
import { plan, startDrain, type DrainableProvider } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake as startRuntime } from 'drainable/testing/haproxy-runtime'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/dataplane.js'

interface Product extends AsyncDisposable {
  readonly lb: DrainableProvider & AsyncDisposable
  readonly reload: () => Promise<unknown>
}

const WEB1 = { pool: 'web', member: 'web1' }
const SETTINGS = /server-state-file in global, and load-server-state-from-file in defaults/

async function runtime(): Promise<Product> {
  const fake = await startRuntime({ master: true })
  const lb = haproxyRuntime({ socket: fake.socket, master: fake.master })
  return productOf(lb, fake)
}

async function dataplane(): Promise<Product> {
  const fake = await startDataplane()
  const { url } = fake
  const lb = haproxyDataplane({ url, username: 'admin', password: 'secret', oldWorkers: 'accept' })
  return productOf(lb, fake)
}

function productOf(
  lb: Product['lb'],
  fake: Pick<Product, 'reload'> & { close: () => Promise<void> },
): Product {
  return {
    lb,
    reload: () => fake.reload(),
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

describe.concurrent('a state file', () => {
  test.each(PRODUCTS)('is not known before, and plan() over the %s says so', async (_, start) => {
    await using it = await start()
    const { notes } = await plan(it.lb, WEB1)
    expect(notes).toContainEqual(expect.stringMatching(SETTINGS))
  })

  test.each(PRODUCTS)('that is missing is told of a held idle: %s', async (_, start) => {
    await using it = await start()
    await using drained = startDrain(it.lb, WEB1, { timeout: '30s' })
    await drained.done
    const opened = () =>
      drained.why().find(({ text }) => text.includes('no state file is in force'))
    expect(opened()).toBeUndefined()
    await it.reload()
    await until('why() says it', () => Promise.resolve(opened()))
    expect(opened()?.hint).toMatch(SETTINGS)
    const { notes } = await plan(it.lb, WEB1)
    expect(notes).toContainEqual(expect.stringContaining('no state file is in force'))
  })
})
