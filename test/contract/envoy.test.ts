import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import type { AdminState, MemberRef } from 'drainable/provider'
import {
  callbackEndpoints,
  envoy,
  fileEndpoints,
  restEndpoints,
  type ServedEndpoints,
} from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import type { ContractHarness } from 'drainable/testing'
import { startFake, type FakeOptions } from 'drainable/testing/envoy'
import { systemClock } from '../../src/provider/clock.js'
import { setups } from '../support/cases.js'
import { contractTests } from '../support/contract.js'
import { until } from '../support/wait.js'
import { SKIPPED } from './skipped/envoy.js'

// The fourth is never drained: it keeps the cluster out of panic when the cases drain every member.
const ADDRESSES = ['10.0.0.1:80', '10.0.0.2:80', '[2001:db8::3]:8080', '10.0.0.4:80'] as const
const members = ADDRESSES.slice(0, 3).map((member) => ({ pool: 'web', member })) as [
  MemberRef,
  MemberRef,
  MemberRef,
]

/** For a loaded machine, in milliseconds: what is waited for is there soon. */
const WITHIN = 30_000

type Sets = { cluster_name: string; endpoints: { lb_endpoints: Lb[] }[] }[]
interface Lb {
  endpoint: unknown
  health_status?: string
}

function initial(service = 'web'): Sets {
  return [
    {
      cluster_name: service,
      endpoints: [
        {
          lb_endpoints: ADDRESSES.map((member) => {
            const cut = member.lastIndexOf(':')
            const address = member.slice(0, cut).replace(/[[\]]/g, '')
            const socket = { address, port_value: Number(member.slice(cut + 1)) }
            return { endpoint: { address: { socket_address: socket } } }
          }),
        },
      ],
    },
  ]
}

/** The same sets after another client changed a member. */
function changed(sets: Sets, ref: MemberRef, to: AdminState | 'gone'): Sets {
  const copy = structuredClone(sets)
  for (const group of copy.flatMap(({ endpoints }) => endpoints)) {
    group.lb_endpoints = group.lb_endpoints.flatMap((lb) => {
      if (!JSON.stringify(lb.endpoint).includes(JSON.stringify(addressOf(ref)))) return [lb]
      if (to === 'gone') return []
      return [{ ...lb, health_status: to === 'ready' ? 'HEALTHY' : 'DRAINING' }]
    })
  }
  return copy
}

function addressOf({ member }: MemberRef): string {
  return member.slice(0, member.lastIndexOf(':')).replace(/[[\]]/g, '')
}

async function overFile(options: FakeOptions = {}): Promise<ContractHarness> {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const file = join(dir, 'web.json')
  const service = options.services?.['web'] ?? 'web'
  const write = async (sets: Sets): Promise<void> => {
    await writeFile(
      `${file}.new`,
      JSON.stringify({ version_info: String(Math.random()), resources: sets }),
    )
    await rename(`${file}.new`, file)
  }
  await write(initial(service))
  const fake = await startFake({ pools: { web: [] }, eds: { file }, ...options })
  const provider = envoy({
    endpoints: fileEndpoints({ cluster: service, path: file }),
    admin: [fake.url],
  })
  return {
    provider,
    pool: 'web',
    members,
    occupy: (ref) => fake.occupy(ref),
    setBehind: async (ref, to) => {
      const { resources } = JSON.parse(await readFile(file, 'utf8')) as { resources: Sets }
      await write(changed(resources, ref, to))
      await seen(fake, ref, to)
    },
    reload: () => fake.restart(),
    disconnect: () => {
      fake.fail({ how: 'refuse' })
      return Promise.resolve()
    },
    damage: async (how) => fake.fail({ how }),
    sockets: () => fake.sockets,
    requests: () => fake.requests.length,
    [Symbol.asyncDispose]: async () => {
      await provider.close()
      await fake.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** A control plane of another client, which owns the sets. */
async function overCallback(): Promise<ContractHarness> {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const file = join(dir, 'web.json')
  let sets = initial()
  let loses = false
  const write = async (): Promise<void> => {
    await writeFile(
      `${file}.new`,
      JSON.stringify({ version_info: String(Math.random()), resources: sets }),
    )
    await rename(`${file}.new`, file)
  }
  await write()
  const fake = await startFake({ pools: { web: [] }, eds: { file } })
  const provider = envoy({
    endpoints: callbackEndpoints({
      // Its cases run side by side, each with a proxy of its own: one fleet each.
      instance: `callback-${fake.url}`,
      load: () => Promise.resolve(structuredClone(sets)),
      publish: async (set) => {
        sets = [set] as Sets
        await write()
        if (!loses) return
        loses = false
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
      },
    }),
    admin: () => Promise.resolve([fake.url]),
  })
  return {
    provider,
    pool: 'web',
    members,
    occupy: (ref) => fake.occupy(ref),
    setBehind: async (ref, to) => {
      sets = changed(sets, ref, to)
      await write()
      await seen(fake, ref, to)
    },
    reload: () => fake.restart(),
    disconnect: () => {
      fake.fail({ how: 'reset' })
      return Promise.resolve()
    },
    loseAnswer: async () => {
      loses = true
    },
    damage: async (how) => fake.fail({ how }),
    sockets: () => fake.sockets,
    requests: () => fake.requests.length,
    [Symbol.asyncDispose]: async () => {
      await provider.close()
      await fake.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** A sink that serves the sets itself. */
async function served(
  sink: ServedEndpoints,
  eds: (port: number) => Partial<FakeOptions>,
  byLoads = false,
): Promise<ContractHarness> {
  const fakes: { url: string }[] = []
  const provider = envoy({
    endpoints: sink,
    ...(byLoads ? {} : { admin: () => Promise.resolve(fakes.map(({ url }) => url)) }),
    expect: 1,
  })
  const { port } = await until(() => sink.address, 'address of the sink', WITHIN)
  const fake = await startFake({ pools: { web: [] }, ...eds(port) })
  fakes.push(fake)
  let sets = initial()
  const signal = new AbortController().signal
  const clock = systemClock
  // Load reports come in by themselves: the first cases look at once.
  const isRead = async (): Promise<boolean> => {
    const { readings } = await provider.observe([members[0]], { signal, clock })
    return readings[0]?.scopes.every(({ state }) => state === 'read') === true
  }
  if (byLoads) await until(isRead, 'load report of the fake', WITHIN)
  return {
    provider,
    pool: 'web',
    members,
    occupy: (ref) => fake.occupy(ref),
    setBehind: async (ref, to) => {
      sets = changed(sets, ref, to)
      await sink.set(sets)
    },
    ...(byLoads ? {} : { reload: () => fake.restart() }),
    disconnect: () => {
      fake.fail({ how: 'status' })
      return Promise.resolve()
    },
    damage: async (how) => fake.fail({ how }),
    sockets: () => fake.sockets,
    requests: () => fake.requests.length,
    [Symbol.asyncDispose]: async () => {
      await provider.close()
      await fake.close()
    },
  }
}

async function seen(fake: { url: string }, ref: MemberRef, to: AdminState | 'gone'): Promise<void> {
  const isShown = async (): Promise<boolean> => {
    const text = await (await fetch(`${fake.url}/clusters`)).text()
    const line = text.split('\n').find((l) => l.startsWith(`web::${ref.member}::health_flags`))
    // A proxy that checks actively keeps the row of a member that was left out while its checks pass.
    const left = line === undefined || line.includes('pending_dynamic_removal')
    const drained = line?.includes('eds_status_draining') ?? false
    return to === 'gone' ? left : !left && drained === (to !== 'ready')
  }
  await until(isShown, `row of ${ref.member} as ${to}`, WITHIN)
}

const grpc = (way: { ads?: boolean; delta?: boolean }) => () =>
  served(grpcEndpoints({ port: 0, initial: initial() }), (port) => ({
    eds: { grpc: `http://127.0.0.1:${port}`, ...way },
  }))

const SETUPS: Readonly<Record<string, () => Promise<ContractHarness>>> = {
  'a file, Envoy 1.40.0': () => overFile(),
  'a file, Envoy 1.37.0, a service name of its own': () =>
    overFile({
      version: '1.37.0',
      services: { web: 'web-eds' },
      mergeWindow: 100,
      connectTimeout: 200,
    }),
  'a file, active checks': () => overFile({ activeChecks: true }),
  'a control plane of another client': overCallback,
  REST: () =>
    served(restEndpoints({ port: 0, initial: initial() }), (port) => ({
      eds: { rest: `http://127.0.0.1:${port}`, interval: 20 },
    })),
  'EDS over gRPC': grpc({}),
  'delta EDS over gRPC': grpc({ delta: true }),
  ADS: grpc({ ads: true }),
  'delta ADS': grpc({ ads: true, delta: true }),
}

const PLAYED = ['a file, Envoy 1.40.0', 'a control plane of another client', 'REST', 'delta ADS']

for (const [name, open] of setups(SETUPS, PLAYED)) {
  describe.concurrent(name, () => {
    const from = name.startsWith('a file') ? 'file' : 'served'
    contractTests(SKIPPED[open === overCallback ? 'callback' : from], open)
  })
}

describe('a fleet of fakes', () => {
  const clock = systemClock
  const ctx = () => ({ signal: AbortSignal.timeout(WITHIN), clock })
  const [ref] = members
  const portOf = async (sink: ServedEndpoints): Promise<number> =>
    (await until(() => sink.address, 'address of the sink', WITHIN)).port

  test('thirty proxies: two members are drained until removed everywhere', async () => {
    const sink = grpcEndpoints({ port: 0, initial: initial() })
    const list: string[] = []
    await using lb = envoy({
      endpoints: sink,
      admin: () => Promise.resolve(list),
      expect: 30,
      onProxyGone: 'wait',
    })
    const url = `http://127.0.0.1:${await portOf(sink)}`
    const fakes = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        startFake({
          pools: { web: [] },
          node: `envoy-${i}`,
          eds: { grpc: url, ads: i % 2 === 0, delta: i % 3 === 0 },
        }),
      ),
    )
    list.push(...fakes.map((fake) => fake.url))
    const end = await fakes[17]!.occupy(ref)
    setTimeout(() => void end(), 1_500)
    const begun = performance.now()
    const report = await drain(lb, members.slice(0, 2), { timeout: '100s', until: 'removed' })
    expect(report.outcome).toBe('removed')
    expect(performance.now() - begun).toBeGreaterThan(1_400)
    const isGone = async (): Promise<boolean> => {
      const texts = await Promise.all(
        fakes.map(async (fake) => (await fetch(`${fake.url}/clusters`)).text()),
      )
      return texts.every((text) => !text.includes('10.0.0.1:80') && !text.includes('10.0.0.2:80'))
    }
    await until(isGone, 'fleet without the two members', WITHIN)
    await Promise.all(fakes.map((fake) => fake.close()))
  }, 180_000)

  test.each([
    ['1.36.2', 'unread'],
    ['1.37.0', 'read'],
  ])('load reports of Envoy %s are %s', async (version, state) => {
    const sink = grpcEndpoints({ port: 0, initial: initial(), loadInterval: '100ms' })
    await using lb = envoy({ endpoints: sink, expect: 1 })
    const url = `http://127.0.0.1:${await portOf(sink)}`
    await using fake = await startFake({
      pools: { web: [] },
      version,
      eds: { grpc: url },
      loads: url,
    })
    const look = async () => (await lb.observe([ref], ctx())).readings[0]?.scopes[0]
    const isKnown = async (): Promise<boolean> =>
      ((await look())?.note ?? '').includes(version) || (await look())?.state === state
    await until(isKnown, `proxy that is ${state}`, WITHIN)
    const end = await fake.occupy(ref)
    if (state === 'read') {
      await until(async () => (await look())?.active === 1, 'request in flight', WITHIN)
      await end()
      await until(async () => (await look())?.active === 0, 'report of its end', WITHIN)
      expect((await look())?.arrivals).toBe(1)
    } else {
      expect((await look())?.state).toBe('unread')
      expect((await look())?.note).toContain('admin API')
    }
    expect((await lb.describe(ctx())).capabilities.blind).toBeGreaterThan(5_000)
  })

  test('before 1.40 a drain is not in force inside the merge window', async () => {
    const sink = grpcEndpoints({ port: 0, initial: initial() })
    const list: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(list) })
    const grpc = `http://127.0.0.1:${await portOf(sink)}`
    const fake = await startFake({
      pools: { web: [] },
      version: '1.38.3',
      mergeWindow: 4_000,
      eds: { grpc },
    })
    list.push(fake.url)
    const forced = async () =>
      (await lb.observe([ref], ctx())).readings[0]?.scopes.every(({ inForce }) => inForce) ?? false
    await until(forced, 'first set in force', WITHIN)
    await lb.apply([{ kind: 'hold', ref: members[1], to: 'drain' }], ctx())
    await lb.apply([{ kind: 'hold', ref, to: 'drain' }], ctx())
    expect(sink.subscribers?.of('web')[0]?.state).toBe('acked')
    expect(await forced()).toBe(false)
    const hits = () => Array.from({ length: 8 }, () => fake.send('web')?.member)
    expect(hits()).toContain(ref.member)
    await until(forced, 'drain in force', WITHIN)
    expect(hits()).not.toContain(ref.member)
    await fake.close()
  })
})

test('every setup of the fake is in the list', () => {
  expect(Object.keys(SETUPS)).toHaveLength(9)
})
