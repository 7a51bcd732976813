/** examples/operator on three products at once: what an operator with a fixed timer meets. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTickets } from 'drainable'
import { systemClock } from 'drainable/provider'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startF5 } from 'drainable/testing/f5-bigip'
import { startFake as startHaproxy } from 'drainable/testing/haproxy-runtime'
import { describe, expect, test } from 'vitest'
import { Operator, type LoadBalancerSpec } from '../../examples/operator/operator.js'
import { eventually } from '../support/eventually.js'
import { backendOf, type Settings } from '../support/operator-backend.js'
import type { ChildWork } from '../support/operator-child.js'
import { temporaryFolder } from '../unit/tickets/set-up.js'

const NODES = ['10.0.0.1', '10.0.0.2', '10.0.0.3']
const LABEL = 'infra'
const spec: LoadBalancerSpec = {
  nodeSelector: LABEL,
  port: 8080,
  drain: { enabled: true, timeoutSeconds: 60 },
}

function node(address: string, labels: Record<string, string> = { [LABEL]: '' }): unknown {
  return {
    metadata: { name: `node-${address}`, labels },
    status: {
      addresses: [{ type: 'InternalIP', address }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}
const all = NODES.map((one) => node(one))
const without = (address: string): unknown[] =>
  NODES.map((one) => node(one, one === address ? {} : undefined))

interface Product extends AsyncDisposable {
  readonly settings: Settings
  occupy(address: string): Promise<() => Promise<void>>
}

const PRODUCTS: Record<string, () => Promise<Product>> = {
  haproxy: async () => {
    const servers = NODES.map((address) => ({ name: `${address}:8080`, address, port: 8080 }))
    const fake = await startHaproxy({ pools: { web: servers }, master: true })
    const { socket, master } = fake
    return {
      settings: { pool: 'web', haproxy: { socket, master } },
      occupy: (address) => fake.occupy({ pool: 'web', member: `${address}:8080` }),
      [Symbol.asyncDispose]: () => fake.close(),
    }
  },
  f5: async () => {
    const fake = await startF5({ pools: { web: NODES.map((one) => `${one}:8080`) } })
    const { urls: url, username, password, ca } = fake
    const fast = { freshness: '200ms', minInterval: '50ms' } as const
    return {
      settings: { pool: '/Common/web', f5: { url, username, password, tls: { ca }, ...fast } },
      occupy: (address) => fake.occupy({ pool: '/Common/web', member: `/Common/${address}:8080` }),
      [Symbol.asyncDispose]: () => fake.close(),
    }
  },
  citrix: async () => {
    const fake = await startCitrix({ pools: { 'sg web': NODES.map((one) => `${one}:8080`) } })
    const { url, username, password, ca } = fake
    const citrix = { url, username, password, tls: { ca }, freshness: '200ms' } as const
    return {
      settings: { pool: 'sg web', citrix },
      occupy: (address) => fake.occupy({ pool: 'sg web', member: `${address}:8080` }),
      [Symbol.asyncDispose]: () => fake.close(),
    }
  },
}

const BUSY = '10.0.0.2'

/** A product with one member at work, and operators of it, one after the other. */
async function stage(name: string) {
  const open = PRODUCTS[name]
  if (open === undefined) throw new Error(`no product ${name}`)
  const stack = new AsyncDisposableStack()
  const one = stack.use(await open())
  const folder = stack.use(await temporaryFolder())
  const { settings } = one
  const { pool, provider } = backendOf(settings)
  stack.use(provider)
  return {
    end: await one.occupy(BUSY),
    /** Its members by address, with the state of each. */
    states: async (): Promise<Record<string, string>> => {
      const context = { clock: systemClock, signal: new AbortController().signal }
      const { readings } = await provider.observe('all', context)
      return Object.fromEntries(
        readings.flatMap((each) =>
          each.present && each.ref.pool === pool && each.address !== undefined
            ? [[each.address, each.own]]
            : [],
        ),
      )
    },
    operator: () => {
      const backend = backendOf(settings)
      stack.use(backend.provider)
      return stack.use(new Operator([backend], fileTickets(folder.path)))
    },
    /** An operator in a process of its own, killed once it drains. @returns the deadline in its ticket */
    killed: async (nodes: readonly unknown[]): Promise<number> => {
      const work: ChildWork = { settings, path: folder.path, spec, nodes }
      const script = new URL('../support/operator-child.ts', import.meta.url)
      const source = new URL('../../scripts/source.mjs', import.meta.url)
      const child = fork(script, [JSON.stringify(work)], { execArgv: ['--import', source.href] })
      await once(child, 'message')
      child.kill('SIGKILL')
      await once(child, 'exit')
      const [ticket = ''] = (await readdir(folder.path)).filter((file) =>
        /^reconcile:.*json$/.test(file),
      )
      const { deadline } = JSON.parse(await readFile(join(folder.path, ticket), 'utf8')) as {
        deadline: string
      }
      return Date.parse(deadline)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

describe.concurrent.each(Object.keys(PRODUCTS))('an operator of %s', (name) => {
  test('deletes a member without a label once its work has ended', async () => {
    await using at = await stage(name)
    const operator = at.operator()
    operator.sync(spec, without(BUSY))
    await eventually(() => expect(operator.status()).toMatchObject([{ phase: 'draining' }]))
    expect(Object.keys(await at.states())).toHaveLength(3)
    await at.end()
    await operator.settled()
    expect(await at.states()).toEqual({ '10.0.0.1': 'ready', '10.0.0.3': 'ready' })
  })

  test('takes a drain back where the label is back in mid-drain', async () => {
    await using at = await stage(name)
    const operator = at.operator()
    operator.sync(spec, without(BUSY))
    await eventually(() => expect(operator.status()).toMatchObject([{ phase: 'draining' }]))
    operator.sync(spec, all)
    await operator.settled()
    expect(await at.states()).toMatchObject({ [BUSY]: 'ready' })
    expect(operator.status()).toEqual([])
    await at.end()
  })

  test('deletes a node whose request never ends at its deadline', async () => {
    await using at = await stage(name)
    const operator = at.operator()
    const brief = { ...spec, drain: { enabled: true, timeoutSeconds: 2 } }
    operator.sync(
      brief,
      NODES.filter((one) => one !== BUSY).map((one) => node(one)),
    )
    await eventually(async () => expect(await at.states()).not.toHaveProperty([BUSY]), LONG)
  })

  test('goes on with its drain after it was killed, to the same deadline', async () => {
    await using at = await stage(name)
    const deadline = await at.killed(without(BUSY))
    const second = at.operator()
    second.sync(spec, without(BUSY))
    await eventually(() => expect(second.status()).toMatchObject([{ phase: 'draining' }]))
    expect(deadlineOf(second)).toBeLessThanOrEqual(deadline + 10)
    await at.end()
    await second.settled()
    expect(await at.states()).toEqual({ '10.0.0.1': 'ready', '10.0.0.3': 'ready' })
  })

  test('deletes at once where the drain is switched off in mid-drain', async () => {
    await using at = await stage(name)
    const operator = at.operator()
    operator.sync(spec, without(BUSY))
    await eventually(() => expect(operator.status()).toMatchObject([{ phase: 'draining' }]))
    operator.sync({ ...spec, drain: { enabled: false, timeoutSeconds: 60 } }, without(BUSY))
    // HAProxy deletes no server at work (`del server`, 2.6 to 3.4): it goes once that has ended.
    if (name === 'haproxy') {
      await eventually(() => expect(operator.status()).toMatchObject([{ held: busy }]))
      await at.end()
    }
    await eventually(async () => expect(await at.states()).not.toHaveProperty([BUSY]), LONG)
  })
})

/** For a loaded machine. */
const LONG = 40_000

function deadlineOf(operator: Operator): number {
  return Date.parse(operator.status()[0]?.deadline ?? '')
}

const busy = expect.stringMatching(/connection|work|in use|session/i) as unknown
