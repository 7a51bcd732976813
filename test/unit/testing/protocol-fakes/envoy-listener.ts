import { envoyListener } from 'drainable/envoy-listener'
import { startFake, type EnvoyListenerFake } from 'drainable/testing/envoy-listener'
import { send, type Subject } from './client.js'

export const subject: Subject = {
  start: (more) => startFake({ ...more }),
  ref: { pool: 'envoy', member: '127.0.0.1:9901' },
  change: (fake: EnvoyListenerFake) => send(fake, 'POST /healthcheck/fail'),
  read: (fake: EnvoyListenerFake) => send(fake, 'GET /server_info'),
  line: /^POST \/healthcheck\/fail$/,
  isDone: (fake: EnvoyListenerFake) => fake.failing,
  words: /^upstream connect error$/,
  deaf: async (fake: EnvoyListenerFake) => {
    fake.fail({ match: /^POST /, how: 'silent' })
    return { lb: envoyListener({ admin: [fake.url] }), ref: { pool: 'envoy', member: fake.member } }
  },
}
