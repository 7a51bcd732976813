import { describe, expect, test } from 'vitest'
import { drain, ready, select, startDrain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { fakeClock, fakeProvider } from 'drainable/testing'

const web1 = { pool: 'web', member: 'web1' }
const login = { url: 'https://127.0.0.1:1', username: 'admin', password: 'secret' }
const sink = callbackEndpoints({
  load: () => Promise.resolve([]),
  publish: () => Promise.resolve(),
})

/** Every option of each is `undefined`, as where a caller passes its own straight through. */
const factories: [
  string,
  Record<string, unknown>,
  readonly string[],
  (options: never) => unknown,
][] = [
  [
    'f5Bigip',
    login,
    [
      'tls',
      'dispatcher',
      'allowPlaintext',
      'partition',
      'auth',
      'loginProvider',
      'trafficGroup',
      'configSync',
      'save',
      'freshness',
      'minInterval',
      'callTimeout',
    ],
    f5Bigip,
  ],
  [
    'citrixAdc',
    login,
    [
      'auth',
      'sessionTimeout',
      'partition',
      'save',
      'desiredState',
      'freshness',
      'callTimeout',
      'tls',
      'allowPlaintext',
      'dispatcher',
    ],
    citrixAdc,
  ],
  [
    'haproxyDataplane',
    login,
    [
      'tls',
      'socketPath',
      'dispatcher',
      'allowPlaintext',
      'durable',
      'membership',
      'oldWorkers',
      'maintCuts',
      'callTimeout',
      'reloadTimeout',
    ],
    haproxyDataplane,
  ],
  [
    'haproxyRuntime',
    { socket: '/run/s' },
    [
      'master',
      'oldWorkers',
      'maintCuts',
      'keepFollowers',
      'connectTimeout',
      'replyTimeout',
      'maxConnections',
    ],
    haproxyRuntime,
  ],
  [
    'envoy',
    { endpoints: sink, admin: ['http://127.0.0.1:1'] },
    ['expect', 'onProxyGone', 'onPanic', 'mergeWindow', 'connectTimeout'],
    envoy,
  ],
  [
    'grpcEndpoints',
    { port: 0 },
    ['host', 'tls', 'initial', 'loadInterval', 'resources'],
    grpcEndpoints,
  ],
  ['restEndpoints', { port: 0 }, ['host', 'initial'], restEndpoints],
  ['fileEndpoints', { cluster: 'web', path: '/tmp/eds.json' }, [], fileEndpoints],
]

describe('an option that is undefined is absent', () => {
  test.each(factories)('%s', (_, given, optional, make) => {
    const options = { ...given, ...Object.fromEntries(optional.map((key) => [key, undefined])) }
    expect(() => make(options as never)).not.toThrow()
  })

  test.each(factories)(
    '%s: a name that does not exist is refused all the same',
    (_, given, _o, make) => {
      expect(() => make({ ...given, surely: undefined } as never)).toThrow(
        /unknown option 'surely'/,
      )
    },
  )

  test('in nested options too', () => {
    const tls = { ca: undefined, insecure: true as const, servername: undefined }
    expect(() => f5Bigip({ ...login, tls })).not.toThrow()
  })

  test('of the verbs', async () => {
    const clock = fakeClock()
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
    const policy = {
      timeout: undefined,
      settle: undefined,
      signal: undefined,
      tickets: undefined,
      id: undefined,
      onTicket: undefined,
      seal: undefined,
      keepReady: undefined,
      escalateAfter: undefined,
      clock,
    }
    const report = await clock.runUntil(drain(lb, web1, policy as never))
    expect(report.outcome).toBe('idle')
    const call = { clock, signal: undefined, waitHealthy: undefined }
    await clock.runUntil(ready(lb, web1, call as never))
    await clock.runUntil(select(lb, web1, { clock, signal: undefined }))
  })

  test('but not in what is to be drained: a member that is undefined would be the whole pool', () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    const target = { pool: 'web', member: undefined }
    expect(() => startDrain(lb, target as never)).toThrow(/target/)
  })
})
