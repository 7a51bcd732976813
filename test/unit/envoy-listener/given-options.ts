import { envoyListener } from 'drainable/envoy-listener'
import type { GivenOptions } from '../../support/given-options.js'

export const given: readonly GivenOptions[] = [
  [
    'envoyListener',
    { admin: 'http://127.0.0.1:1' },
    ['pool', 'noticed', 'failAfter', 'probe', 'ignore'],
    envoyListener,
  ],
]
