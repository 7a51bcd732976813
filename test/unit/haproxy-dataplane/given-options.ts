import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { LOGIN, type GivenOptions } from '../../support/given-options.js'

export const given: readonly GivenOptions[] = [
  [
    'haproxyDataplane',
    LOGIN,
    [
      'tls',
      'socketPath',
      'dispatcher',
      'allowPlaintext',
      'durable',
      'confirm',
      'membership',
      'oldWorkers',
      'keepFollowers',
      'maintCuts',
      'callTimeout',
      'reloadTimeout',
    ],
    haproxyDataplane,
  ],
]
