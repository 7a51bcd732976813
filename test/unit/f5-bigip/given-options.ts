import { f5Bigip } from 'drainable/f5-bigip'
import { LOGIN, type GivenOptions } from '../../support/given-options.js'

export const given: readonly GivenOptions[] = [
  [
    'f5Bigip',
    LOGIN,
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
      'persistence',
      'freshness',
      'minInterval',
      'callTimeout',
    ],
    f5Bigip,
  ],
]
