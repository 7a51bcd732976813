import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints, loadReports } from 'drainable/envoy/grpc'
import type { GivenOptions } from '../../support/given-options.js'

const sink = callbackEndpoints({
  load: () => Promise.resolve([]),
  publish: () => Promise.resolve(),
})

export const given: readonly GivenOptions[] = [
  [
    'envoy',
    { endpoints: sink, admin: ['http://127.0.0.1:1'] },
    [
      'loads',
      'expect',
      'onProxyGone',
      'onPanic',
      'panicThreshold',
      'mergeWindow',
      'connectTimeout',
    ],
    envoy,
  ],
  [
    'grpcEndpoints',
    { port: 0 },
    ['host', 'tls', 'initial', 'loadInterval', 'resources'],
    grpcEndpoints,
  ],
  ['loadReports', { port: 0 }, ['host', 'tls', 'interval'], loadReports],
  ['restEndpoints', { port: 0 }, ['host', 'initial'], restEndpoints],
  ['fileEndpoints', { cluster: 'web', path: '/tmp/eds.json' }, [], fileEndpoints],
]
