import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { GivenOptions } from '../../support/given-options.js'

export const given: readonly GivenOptions[] = [
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
]
