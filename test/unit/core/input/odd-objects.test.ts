import { describe, expect, test } from 'vitest'
import {
  combineProviders,
  drain,
  findOrphans,
  fromUnstorage,
  heldMembers,
  natsLease,
  plan,
  redisLease,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  type Ticket,
} from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { formatPlan, mergeSlices } from 'drainable/endpoints'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { followService } from 'drainable/kubernetes'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { json } from '../balancer.js'

const web1 = { pool: 'web', member: 'web1' }
const make = () => {
  const clock = fakeClock()
  return { clock, lb: fakeProvider({ pools: { web: ['web1', 'web2'] }, clock }) }
}

interface Loop {
  self?: Loop
  readonly empty?: undefined
}

/** An object that refers to itself, with an option that is `undefined` in it. */
function loop(): Loop {
  const made: Loop = { empty: undefined }
  made.self = made
  return made
}

describe('an object that refers to itself', () => {
  test.each<[string, object, RegExp]>([
    ['as the options', loop(), /unknown option/],
    ['as an option', { timeout: loop() }, /timeout is an object, expected milliseconds/],
  ])('%s is refused by its field', async (_, policy, words) => {
    const { lb } = make()
    const error: unknown = await drain(lb, web1, policy as never).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(String(error)).toMatch(words)
  })

  test('as a store is a store', async () => {
    const kept = new Map<string, unknown>()
    const tickets = {
      get: async (key: string) => kept.get(key),
      set: async (key: string, value: unknown) => kept.set(key, value),
      delete: async (key: string) => kept.delete(key),
      inner: loop(),
    }
    const { clock, lb } = make()
    const report = await clock.runUntil(drain(lb, web1, { clock, tickets }))
    expect(report.outcome).toBe('idle')
  })
})

test('an object without a constructor is refused by its field', async () => {
  const keepReady: unknown = Object.create(Object.create(null) as object)
  await expect(drain(make().lb, web1, { keepReady } as never)).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringContaining('keepReady') as string,
  })
})

test('a getter that throws is INVALID_OPTIONS with its words', async () => {
  const { lb } = make()
  const policy = {
    get timeout(): never {
      throw new Error('no configuration yet')
    },
  }
  await expect(drain(lb, web1, policy)).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: "drain(): timeout: its getter threw 'no configuration yet'",
  })
})

test('a getter in an option that throws is named by its path', () => {
  const tls = {
    get ca(): never {
      throw new Error('the vault is sealed')
    },
  }
  const options = { url: 'https://lb.example', username: 'u', password: 'p', tls }
  expect(() => f5Bigip(options)).toThrow(
    expect.objectContaining({
      code: 'INVALID_OPTIONS',
      message: "f5Bigip(): tls.ca: its getter threw 'the vault is sealed'",
    }),
  )
})

const key = { key: 'edge' }
const kube = {
  getCurrentCluster: () => ({ server: 'https://kube.example' }),
  applyToHTTPSOptions: () => Promise.resolve(),
}
const service = { namespace: 'shop', service: 'web', port: 'http', pool: 'web' }

describe('a getter that throws', () => {
  const sealed = (field: string): never =>
    Object.defineProperty({}, field, {
      enumerable: true,
      get: () => {
        throw new Error('the vault is sealed')
      },
    }) as never
  const { lb } = make()
  const refused: readonly (readonly [string, string, () => unknown])[] = [
    ['of a target', 'drain(): target', () => drain(lb, sealed('pool'))],
    ['of a listed target', 'drain(): target', () => drain(lb, [sealed('member')])],
    ['of a ticket', 'restore(): ticket', () => restore(lb, sealed('v'))],
    ['of a step', 'stepDrain(): from', () => stepDrain(lb, sealed('target'))],
    ['of a provider', 'drain(): provider', () => drain(sealed('observe'), web1)],
    ['of balancers', 'combineProviders(): providers', () => combineProviders(sealed('a'))],
    ['of a storage', 'fromUnstorage(): storage', () => fromUnstorage(sealed('getItem'))],
    ['of a slice', 'mergeSlices(): slices', () => mergeSlices([sealed('addressType')])],
    ['of a store', 'findOrphans(): store', () => findOrphans(sealed('describe'), lb)],
    ['of a client of Redis', 'redisLease(): client', () => redisLease(sealed('eval'), key)],
    ['of a bucket of NATS', 'natsLease(): bucket', () => natsLease(sealed('get'), key)],
    ['of a plan', 'formatPlan(): plan', () => formatPlan(sealed('steps'))],
    ['of a loop', 'followService(): loop', () => followService(sealed('set'), kube, service)],
    [
      'of a kubeconfig',
      'followService(): config',
      () => followService({ set: () => undefined }, sealed('getCurrentCluster'), service),
    ],
  ]
  test.each(refused)('%s is told with its words', async (_, what, call) => {
    const code = what.endsWith('ticket') ? 'TICKET_INVALID' : 'INVALID_OPTIONS'
    await expect((async () => call())()).rejects.toMatchObject({
      code,
      message: expect.stringContaining(what) as string,
      cause: expect.objectContaining({ message: 'the vault is sealed' }) as unknown,
    })
  })

  test('of options that are a proxy is told with its words', async () => {
    const options = new Proxy({}, { ownKeys: () => sealed('a')['a'] })
    await expect(drain(lb, web1, options)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })
})

describe('a proxy that was revoked is refused by its name', () => {
  function revoked(): never {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy as never
  }
  test.each<[string, () => unknown]>([
    ['combineProviders(): providers', () => combineProviders(revoked())],
    ['formatPlan(): plan', () => formatPlan({ steps: [revoked()], held: [], changes: [] })],
    ['followService(): services', () => followService({ set: () => undefined }, kube, revoked())],
  ])('%s', (what, call) => {
    expect(call).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTIONS',
        message: expect.stringContaining(what) as string,
      }),
    )
  })
})

describe('an option that holds options', () => {
  const given = { url: 'https://lb.example', username: 'u', password: 'p' }
  const socket = { host: 'lb.example', port: 9999 }
  const makes: readonly [string, (tls: never) => unknown][] = [
    ['haproxyDataplane(): tls', (tls) => haproxyDataplane({ ...given, tls })],
    ['f5Bigip(): tls', (tls) => f5Bigip({ ...given, tls })],
    ['citrixAdc(): tls', (tls) => citrixAdc({ ...given, tls })],
    ['haproxyRuntime(): tls', (tls) => haproxyRuntime({ socket, tls })],
  ]
  test.each(makes)('%s is no promise and no Map', (what, make) => {
    expect(() => make(Promise.resolve({}) as never)).toThrow(`${what}: found a promise; await it`)
    expect(() => make(new Map() as never)).toThrow(`${what}: expected an object, found a Map`)
  })

  test.each(['map', 'nodeEnd'])('of followService(), %s, is no promise', (name) => {
    const follow = (): unknown =>
      followService({ set: () => undefined }, kube, service, { [name]: Promise.resolve({}) })
    expect(follow).toThrow(`followService(): ${name}: found a promise; await it first`)
  })
})

test.each([42, null, Promise.resolve()])('plan() refuses the act %o', async (act) => {
  await expect(plan(make().lb, { pool: 'web' }, { act } as never)).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringContaining('plan(): act: expected a function') as string,
  })
})

describe('keys that are no function', () => {
  const store = { get: () => undefined, set: () => true, delete: () => true, keys: ['a'] }

  test('of a store are refused', async () => {
    await expect(heldMembers(store as never)).rejects.toThrow(
      'keys: expected a function that lists the keys',
    )
  })

  test('of an unstorage are refused', () => {
    const storage = { getItem: () => null, setItem: () => null, removeItem: () => null, getKeys: 1 }
    expect(() => fromUnstorage(storage as never)).toThrow('getKeys: expected a function')
  })
})

test.each<[string, () => unknown]>([
  ['redisLease', () => redisLease({ eval: () => undefined } as never, options)],
  [
    'natsLease',
    () => natsLease({ get: () => null, create: () => null, update: () => null } as never, options),
  ],
])('%s() refuses an unknown option', (_, call) => {
  expect(call).toThrow("unknown option 'ttl'")
})
const options = { key: 'edge', ttl: '30s' } as never

describe('a ticket whose times are no times', () => {
  async function damaged(change: (ticket: Record<string, never>) => void) {
    const { clock, lb } = make()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket) as unknown as Record<string, never>
    await run.release()
    change(ticket)
    return { lb, ticket: ticket as unknown as Ticket }
  }

  const damages: readonly [string, (ticket: never) => void][] = [
    ['startedAt', (ticket: { startedAt: unknown }) => (ticket.startedAt = 1e308)],
    ['deadline', (ticket: { deadline: string }) => (ticket.deadline = '+275760-09-14T00:00:00Z')],
    [
      'startedAt of a member',
      (ticket: { members: { startedAt: string }[] }) =>
        (ticket.members[0]!.startedAt = '2026-02-30T00:00:00Z'),
    ],
  ]

  test.each(damages)('is refused for %s', async (_, change) => {
    const { lb, ticket } = await damaged(change as never)
    expect(() => resumeDrain(lb, ticket)).toThrow(
      expect.objectContaining({ code: 'TICKET_INVALID' }),
    )
    await expect(restore(lb, ticket)).rejects.toMatchObject({ code: 'TICKET_INVALID' })
  })
})
