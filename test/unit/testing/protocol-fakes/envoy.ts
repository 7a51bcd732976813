import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake, type EnvoyFake } from 'drainable/testing/envoy'
import { send, type Subject } from './client.js'

export const subject: Subject = {
  start: (more) => startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] }, ...more }),
  ref: { pool: 'web', member: '10.0.0.1:80' },
  change: (fake: EnvoyFake) => send(fake, 'POST /healthcheck/fail'),
  read: (fake: EnvoyFake) => send(fake, 'GET /ready'),
  line: /^POST \/healthcheck\/fail$/,
  words: /^upstream connect error$/,
  deaf: async (fake: EnvoyFake) => {
    const address = { address: '10.0.0.1', port_value: 80 }
    const endpoint = { endpoint: { address: { socket_address: address } } }
    const set = { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] }
    const lb = envoy({
      onPanic: 'allow',
      endpoints: callbackEndpoints({
        instance: fake.url,
        load: () => Promise.resolve([set]),
        publish: () => new Promise(() => undefined),
      }),
      admin: [fake.url],
    })
    return { lb, ref: { pool: 'web', member: '10.0.0.1:80' } }
  },
}
