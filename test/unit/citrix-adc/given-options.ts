import { citrixAdc } from 'drainable/citrix-adc'
import { LOGIN, type GivenOptions } from '../../support/given-options.js'

export const given: readonly GivenOptions[] = [
  [
    'citrixAdc',
    LOGIN,
    [
      'auth',
      'sessionTimeout',
      'partition',
      'save',
      'desiredState',
      'persistence',
      'freshness',
      'callTimeout',
      'tls',
      'allowPlaintext',
      'dispatcher',
    ],
    citrixAdc,
  ],
]
