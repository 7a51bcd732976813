import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { callbackEndpoints, envoy, fileEndpoints, type EnvoyOptions } from 'drainable/envoy'
import { DrainableError, type Change } from 'drainable/provider'
import { startFake, type EnvoyFake, type FakeOptions } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']
const [first = '', second = ''] = members
const ref = { pool: 'web', member: first }
const hold = { kind: 'hold', ref, to: 'drain' } as const
const restore = { kind: 'restore', ref, expect: 'drain', to: 'ready' } as const
const remove = { kind: 'remove', ref } as const
const add = {
  kind: 'add',
  ref: { pool: 'web', member: '10.0.0.9:80' },
  address: '10.0.0.9',
  port: 80,
} as const

type Statuses = Readonly<Record<string, string | number>>

function setOf(names: readonly string[], statuses: Statuses = {}) {
  const lb = names.map((name) => ({
    endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
    ...(statuses[name] === undefined ? {} : { health_status: statuses[name] }),
  }))
  return { cluster_name: 'web', endpoints: [{ lb_endpoints: lb }] }
}

const clock = systemClock
const ctx = () => ({ signal: AbortSignal.timeout(15_000), clock })

interface Row {
  readonly of: string
  readonly change: Change
  readonly is: readonly [status: 'rejected', code: string, retryable: boolean]
  readonly names?: readonly string[]
  readonly statuses?: Statuses
  readonly fake?: FakeOptions
  readonly before?: (fake: EnvoyFake) => unknown
  /** Whether another set stands at each look. */
  readonly restless?: true
  /** What a look at the sets throws from the second one on. */
  readonly unreadable?: DrainableError
}

/** `retryable`: the same change can be carried out later without a new decision. */
const ROWS: readonly Row[] = [
  {
    of: 'an endpoint that is not there',
    change: { ...hold, ref: add.ref },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'a set that is not there',
    change: { ...hold, ref: { pool: 'none', member: first } },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'an endpoint that is another one now',
    change: { ...hold, identity: `${first} app-7` },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an endpoint whose status is an unknown number',
    change: hold,
    statuses: { [first]: 77 },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a restore of a state that another client has changed',
    change: { ...restore, expect: 'ready', to: 'drain' },
    statuses: { [first]: 77 },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a hold to maint',
    change: { ...hold, to: 'maint' },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a cut',
    change: { kind: 'terminate', ref },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a hold that would put the cluster into panic',
    change: hold,
    statuses: { [second]: 'UNHEALTHY', '10.0.0.3:80': 'UNHEALTHY', '10.0.0.4:80': 'UNHEALTHY' },
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a removal of the last endpoint',
    change: remove,
    names: [first],
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a removal that would leak connections',
    change: remove,
    fake: { closeOnSetChange: true },
    before: (fake) => fake.occupy(ref),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a set that others change all the time',
    change: hold,
    restless: true,
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a control plane that can not be read before the publication',
    change: hold,
    unreadable: new DrainableError('UNREACHABLE', 'the control plane is away'),
    is: ['rejected', 'UNREACHABLE', true],
  },
  {
    of: 'a control plane that refuses every look before the publication',
    change: hold,
    unreadable: new DrainableError('FORBIDDEN', 'the control plane refuses every look'),
    is: ['rejected', 'FORBIDDEN', false],
  },
  {
    of: 'an addition under a name that is not its address',
    change: { ...add, ref },
    is: ['rejected', 'INVALID_OPTIONS', false],
  },
  {
    of: 'an addition with a weight that Envoy refuses',
    change: { ...add, weight: 0 },
    is: ['rejected', 'INVALID_OPTIONS', false],
  },
]

async function open(row: Row, options: Partial<EnvoyOptions> = {}) {
  const fake = await startFake({ pools: { web: members }, ...row.fake })
  let looks = 0
  const load = () => {
    looks += 1
    if (row.unreadable !== undefined && looks > 1) return Promise.reject(row.unreadable)
    const more = row.restless === true ? [`10.0.9.${looks}:80`] : []
    return Promise.resolve(setOf([...(row.names ?? members), ...more], row.statuses))
  }
  const endpoints = callbackEndpoints({ load, publish: () => Promise.resolve() })
  const lb = envoy({ endpoints, admin: [fake.url], ...options })
  return {
    fake,
    lb,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
    },
  }
}

describe.concurrent('a refusal, and whether the change can succeed later', () => {
  test.each(ROWS)('$of', async (row) => {
    await using it = await open(row)
    await row.before?.(it.fake)
    const [result] = await it.lb.apply([row.change], ctx())
    const [status, code, retryable] = row.is
    expect(result).toMatchObject({ status, error: { code, retryable } })
  })
})

test('a closed provider refuses once and for all', async () => {
  await using it = await open({ of: '', change: hold, is: ['rejected', '', false] })
  await it.lb.close()
  await expect(it.lb.apply([hold], ctx())).rejects.toMatchObject({
    code: 'CONNECTION_LOST',
    retryable: false,
  })
})

test('a file that is gone can come back, a file without the set can not', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const path = join(dir, 'web.json')
  await using fake = await startFake({ pools: { web: members } })
  await using lb = envoy({
    endpoints: fileEndpoints({ cluster: 'web', path }),
    admin: [fake.url],
  })
  await expect(lb.apply([hold], ctx())).rejects.toMatchObject({
    code: 'UNREACHABLE',
    retryable: true,
  })
  await writeFile(path, JSON.stringify({ resources: [{ ...setOf(members), cluster_name: 'api' }] }))
  await expect(lb.apply([hold], ctx())).rejects.toMatchObject({
    code: 'NOT_FOUND',
    retryable: false,
  })
  await rm(dir, { recursive: true, force: true })
})
