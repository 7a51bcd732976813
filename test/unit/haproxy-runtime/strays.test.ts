import { expect, test } from 'vitest'
import { fakeClock } from 'drainable/testing'
import { Strays } from '../../../src/adapters/haproxy-runtime/read/strays.js'
import { refKey } from '../../../src/provider/member-ref.js'

const REF = { pool: 'web', member: 'web1' }
const EMPTY =
  '1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n'

type Looked = Parameters<Strays['note']>

/** One process with the server at an address. */
function sightAt(address: string, active: number) {
  const state = { pool: 'web', name: 'web1', address, port: 80, resolved: false }
  const row = { active, queued: 0, pooled: 0, arrivals: 5, mayHide: false }
  return { members: new Map([[refKey(REF), { ref: REF, state, own: 'drain', row }]]) }
}

test.each([['10.0.0.1'], ['2001:db8::1']])(
  'a row of an old process counts again once its server is back at %s',
  async (address) => {
    const strays = new Strays()
    const channel = { run: () => Promise.resolve({ replies: ['', EMPTY] }) }
    const ctx = { clock: fakeClock(), signal: new AbortController().signal }
    const old = sightAt(address, 1)
    const note = (serves: object, isOpen: boolean) =>
      strays.note(
        ...([
          [REF],
          { sight: old, view: { moves: () => 0 }, serves, isOpen },
          channel,
          ctx,
        ] as unknown as Looked),
      )
    await note(sightAt('10.0.0.9', 0), true)
    expect(strays.isOwn(REF)).toBe(false)
    await note(sightAt(address, 0), false)
    expect(strays.isOwn(REF)).toBe(true)
  },
)
