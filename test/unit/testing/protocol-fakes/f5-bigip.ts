import { f5Bigip } from 'drainable/f5-bigip'
import { startFake, type BigipFake } from 'drainable/testing/f5-bigip'
import { basic, send, type Subject } from './client.js'

const ref = { pool: 'web', member: '10.0.0.1:80' }
const MEMBER = '/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80'

export const subject: Subject = {
  start: (more) => startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] }, ...more }),
  ref,
  change: (fake: BigipFake) =>
    send(fake, `PATCH ${MEMBER}`, { session: 'user-disabled' }, basic(fake)),
  read: (fake: BigipFake) => send(fake, `GET ${MEMBER}`, undefined, basic(fake)),
  line: /^PATCH /,
  isDone: (fake: BigipFake) => fake.state(ref) === 'drain',
  words: /Configuration Utility restarting/,
  deaf: async (fake: BigipFake) => {
    const { url, username, password, ca } = fake
    fake.fail({ match: /^PATCH /, how: 'silent' })
    const pace = { freshness: '10ms', minInterval: '20ms' } as const
    const lb = f5Bigip({ url, username, password, ...pace, ...(ca && { tls: { ca } }) })
    return { lb, ref: { pool: '/Common/web', member: '/Common/10.0.0.1:80' } }
  },
}
