import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { basic, send, type Subject } from './client.js'

const SERVER = '/v3/services/haproxy/runtime/backends/web/servers/web1'

export const subject: Subject = {
  start: (more) => startFake({ pools: { web: ['web1', 'web2'] }, tls: true, ...more }),
  ref: { pool: 'web', member: 'web1' },
  change: (fake: DataplaneFake) =>
    send(fake, `PUT ${SERVER}`, { admin_state: 'drain' }, basic(fake)),
  read: (fake: DataplaneFake) => send(fake, `GET ${SERVER}`, undefined, basic(fake)),
  line: /^PUT /,
  isDone: async (fake: DataplaneFake) =>
    (await fake.run('show servers state web')).includes(' web1 127.0.0.1 2 8 '),
  deaf: async (fake: DataplaneFake) => {
    const { url, username, password, ca } = fake
    fake.fail({ match: /^PUT /, how: 'silent' })
    const lb = haproxyDataplane({ url, username, password, ...(ca && { tls: { ca } }) })
    return { lb, ref: { pool: 'web', member: 'web1' } }
  },
  words: /^\{"code":500,"message":"made to fail with 500"\}$/m,
}
