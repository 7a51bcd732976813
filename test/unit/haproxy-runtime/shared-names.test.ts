import { fakeClock } from 'drainable/testing'
import { expect, test } from 'vitest'
import { ProcessView } from '../../../src/adapters/haproxy-runtime/read/read.js'
import type { Answer, Channel } from '../../../src/adapters/haproxy-runtime/session/channel.js'

const STATE = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_check_state srv_port
2 web 1 w1 10.0.0.1 2 0 1 1 0 80
`
const HEADER = '# pxname,svname,qcur,scur,stot,status,iid,sid,type,weight,act,bck,\n'
const FRONTEND = 'web,FRONTEND,0,0,0,OPEN,3,0,0,,,,\n'
const ROWS = 'web,w1,0,0,0,UP,2,1,2,1,1,0,\nweb,BACKEND,0,0,0,UP,2,0,1,1,1,0,\n'

/** A HAProxy in which a frontend has the name and the number of the backend: only the list of all proxies has its rows. */
const channel: Channel = {
  run: async (commands) => {
    const replies = commands.map((command) => {
      if (command.startsWith('show servers state')) return STATE
      return `${HEADER}${command.includes(' -1 ') ? ROWS : FRONTEND}`
    })
    return { info: {} as Answer['info'], replies }
  },
}

test('looks side by side at a backend with the name of a frontend find its servers', async () => {
  const view = new ProcessView()
  const ctx = { signal: new AbortController().signal, clock: fakeClock() }
  const look = () => view.read(new Map([['web', new Set(['w1'])]]), channel, ctx)
  const shown = await Promise.all([look(), look(), look()])
  expect(shown.map(({ members }) => members.size)).toEqual([1, 1, 1])
  expect(view.isDisabled('web')).toBe(false)
})
