import { citrixAdc } from 'drainable/citrix-adc'
import { startFake, type CitrixFake } from 'drainable/testing/citrix-adc'
import { send, type Subject } from './client.js'

const ref = { pool: 'web', member: 'web1:80' }
const disable = {
  servicegroup: { servicegroupname: 'web', servername: 'web1', port: 80, graceful: 'YES' },
}

function asked(fake: CitrixFake, line: string, body?: unknown) {
  const credentials = { 'x-nitro-user': fake.username, 'x-nitro-pass': fake.password }
  return send(fake, line, body, credentials)
}

export const subject: Subject = {
  start: (more) => startFake({ pools: { web: ['web1:80', 'web2:80'] }, ...more }),
  ref,
  change: (fake: CitrixFake) =>
    asked(fake, 'POST /nitro/v1/config/servicegroup?action=disable', disable),
  read: (fake: CitrixFake) =>
    asked(fake, 'GET /nitro/v1/config/servicegroup_servicegroupmember_binding/web'),
  line: /^POST .*action=disable$/,
  isDone: (fake: CitrixFake) => !fake.look(ref).enabled,
  words: /503/,
  deaf: async (fake: CitrixFake) => {
    const { url, username, password, ca } = fake
    fake.fail({ match: /action=disable/, how: 'silent' })
    const lb = citrixAdc({ url, username, password, freshness: '50ms', ...(ca && { tls: { ca } }) })
    return { lb, ref }
  },
}
