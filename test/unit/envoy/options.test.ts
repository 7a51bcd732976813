import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../src/provider/clock.js'

const set = {
  cluster_name: 'web',
  endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: '/x' } } } }] }],
}
const clock = systemClock
const ctx = () => ({ signal: AbortSignal.timeout(5_000), clock })
const ref = { pool: 'web', member: '10.0.0.1:80' }

describe('options', () => {
  test.each([
    [() => envoy({ endpoints: fileEndpoints({ cluster: 'web', path: '/x/web.json' }) }), 'admin'],
    [
      () =>
        envoy({
          endpoints: fileEndpoints({ cluster: 'web', path: '/x/web.json' }),
          admin: 'http://127.0.0.1:1' as never,
        }),
      "admin: expected a list of addresses such as ['http://127.0.0.1:9901']",
    ],
    [() => envoy({ endpoints: {} as never, admin: ['http://127.0.0.1:1'] }), 'fileEndpoints()'],
    [
      () =>
        envoy({
          endpoints: callbackEndpoints({ load: async () => [], publish: async () => undefined }),
          admin: ['ftp://x'],
        }),
      'http',
    ],
    [
      () => envoy({ endpoints: grpcEndpoints({ port: 0, initial: [set] }), exspect: 3 } as never),
      'exspect',
    ],
    [() => fileEndpoints({ cluster: 'web', path: '/x/web.pb' }), '.yaml or .yml'],
    [() => fileEndpoints([]), 'files: expected at least one'],
    [
      () =>
        fileEndpoints([
          { cluster: 'web', path: '/x/web.json' },
          { cluster: 'web', path: '/x/api.json' },
        ]),
      "files[1].cluster: 'web' is there twice",
    ],
    [
      () =>
        fileEndpoints([
          { cluster: 'web', path: '/x/web.json' },
          { cluster: 'api', path: '/x/../x/web.json' },
        ]),
      'files[1].path is there twice: Envoy refuses',
    ],
    [() => restEndpoints({ port: 70_000 }), 'port'],
    [() => restEndpoints({ port: 0, initial: [] }), 'no endpoint set'],
    [() => restEndpoints({ port: 0, initial: [{ cluster_name: 'web', endpoints: [] }] }), 'empty'],
    [() => grpcEndpoints({ port: 0, initial: [set, set] }), 'twice'],
    [() => grpcEndpoints({ port: 0, initial: [new Uint8Array([7])] }), 'initial'],
    [() => grpcEndpoints({ port: 0, tls: { cert: '/no/such/file', key: 'x' } }), 'tls.cert'],
    [() => grpcEndpoints({ port: 0, loadInterval: 10, initial: [set] }), 'loadInterval'],
  ])('a wrong option is refused at once, by name: %#', (make, words) => {
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }))
    expect(make).toThrow(words)
  })
})

test.each(['localhost:9901', '10.0.0.7:9901', '[::1]:9901'])(
  'an admin address without a scheme is told how to write it: %s',
  (address) => {
    const endpoints = grpcEndpoints({ port: 0, initial: [set] })
    expect(() => envoy({ endpoints, admin: [address] })).toThrow(`write 'http://${address}'`)
  },
)

describe('a bad file publishes nothing', () => {
  let dir = ''
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  })
  afterAll(async () => {
    await rm(dir, { recursive: true, force: true })
  })

  test('that is a symbolic link is refused, and stays one', async () => {
    const own = await mkdtemp(join(dir, 'link-'))
    const link = join(own, 'link.json')
    await writeFile(join(own, 'real.json'), JSON.stringify({ resources: [set] }))
    await symlink(join(own, 'real.json'), link)
    const sink = fileEndpoints({ cluster: 'web', path: link })
    await using lb = envoy({ endpoints: sink, admin: ['http://127.0.0.1:1'] })
    await expect(lb.observe('all', ctx())).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('symbolic link') as string,
    })
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    await rm(own, { recursive: true })
  })

  test.each([
    ['not JSON', 'no json at all', 'MALFORMED_REPLY', 'not JSON'],
    ['not EDS', '{"clusters":[]}', 'MALFORMED_REPLY', 'resources'],
    [
      'an unknown cluster',
      JSON.stringify({ resources: [{ ...set, cluster_name: 'other' }] }),
      'NOT_FOUND',
      "'other'",
    ],
    [
      'an empty set',
      JSON.stringify({ resources: [{ cluster_name: 'web', endpoints: [] }] }),
      'MALFORMED_REPLY',
      'empty',
    ],
    [
      'a typo in a status',
      JSON.stringify({
        resources: [
          { cluster_name: 'web', endpoints: [{ lb_endpoints: [{ health_status: 'DRAINNG' }] }] },
        ],
      }),
      'MALFORMED_REPLY',
      'resources[0].endpoints[0].lb_endpoints[0].health_status',
    ],
    [
      'weight 0',
      JSON.stringify({
        resources: [
          { cluster_name: 'web', endpoints: [{ lb_endpoints: [{ load_balancing_weight: 0 }] }] },
        ],
      }),
      'MALFORMED_REPLY',
      'load_balancing_weight',
    ],
  ])('%s', async (_, text, code, words) => {
    const path = join(dir, 'web.json')
    await writeFile(path, text)
    await using fake = await startFake()
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path }),
      admin: [fake.url],
    })
    for (const call of [
      () => lb.observe('all', ctx()),
      () => lb.apply([{ kind: 'hold', ref, to: 'drain' }], ctx()),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code,
        message: expect.stringContaining(words) as string,
      })
    }
    expect(await readFile(path, 'utf8')).toBe(text)
    expect(await readdir(dir)).toEqual(['web.json'])
  })

  test('that is missing', async () => {
    await using fake = await startFake()
    const endpoints = fileEndpoints({ cluster: 'web', path: join(dir, 'none.json') })
    await using lb = envoy({ endpoints, admin: [fake.url] })
    await expect(lb.observe('all', ctx())).rejects.toMatchObject({ code: 'UNREACHABLE' })
  })

  test('an add that Envoy would refuse is refused here', async () => {
    const path = join(dir, 'web.json')
    const ok = JSON.stringify({ resources: [set] })
    await writeFile(path, ok)
    await using fake = await startFake()
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path }),
      admin: [fake.url],
    })
    const results = await lb.apply(
      [
        { kind: 'add', ref, address: '10.0.0.1', port: 80, weight: 0 },
        { kind: 'add', ref: { pool: 'web', member: 'app-1' }, address: '10.0.0.1', port: 80 },
        { kind: 'add', ref: { pool: 'none', member: ref.member }, address: '10.0.0.1', port: 80 },
        { kind: 'remove', ref: { pool: 'web', member: '/x' } },
      ],
      ctx(),
    )
    expect(results.map((r) => 'error' in r && r.error.code)).toEqual([
      'INVALID_OPTIONS',
      'INVALID_OPTIONS',
      'NOT_FOUND',
      'REJECTED',
    ])
    expect(await readFile(path, 'utf8')).toBe(ok)
  })

  test('a hidden admin path is named', async () => {
    const path = join(dir, 'web.json')
    await writeFile(path, JSON.stringify({ resources: [set] }))
    await using fake = await startFake({ allowPaths: ['/stats'] })
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path }),
      admin: [fake.url],
    })
    await expect(lb.observe('all', ctx())).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringContaining('allow_paths') as string,
    })
  })

  test('nothing is served without anything to adopt', async () => {
    await using fake = await startFake({ pools: { web: [] } })
    await using lb = envoy({ endpoints: restEndpoints({ port: 0 }), admin: [fake.url] })
    await expect(lb.observe('all', ctx())).rejects.toMatchObject({ code: 'REJECTED' })
  })

  test('nothing is adopted from proxies with different sets', async () => {
    await using one = await startFake({ pools: { web: ['10.0.0.1:80'] } })
    await using two = await startFake({ pools: { web: ['10.0.0.2:80'] }, node: 'envoy-2' })
    await using lb = envoy({ endpoints: restEndpoints({ port: 0 }), admin: [one.url, two.url] })
    await expect(lb.observe('all', ctx())).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('truncated JSON of an admin API is not a reading', async () => {
    const path = join(dir, 'web.json')
    await writeFile(path, JSON.stringify({ resources: [set] }))
    await using fake = await startFake()
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path }),
      admin: [fake.url],
    })
    await lb.observe('all', ctx())
    fake.fail({ how: 'garbage', match: /clusters/ })
    await expect(lb.observe('all', ctx())).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  })
})

test('an invalid PEM key is not repeated in the error', () => {
  const key = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'
  const cert = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----'
  let thrown: unknown
  try {
    grpcEndpoints({ port: 0, tls: { cert, key } })
  } catch (error) {
    thrown = error
  }
  expect(thrown).toMatchObject({ code: 'INVALID_OPTIONS' })
  const { message, cause } = thrown as Error
  expect(`${message} ${String(cause)}`).not.toContain(key)
  expect(message).toContain('tls.key')
})
