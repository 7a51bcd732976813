import { expect, test } from 'vitest'
import { fakeClock } from 'drainable/testing'
import { OffRowWork } from '../../../src/adapters/haproxy-runtime/read/off-row.js'
import { refKey } from '../../../src/provider/member-ref.js'

const REF = { pool: 'web', member: 'web1' }
const EMPTY =
  '1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n'

type Looked = Parameters<OffRowWork['note']>

/** One process with the server at an address. */
function shownAt(address: string, active: number) {
  const state = { pool: 'web', name: 'web1', address, port: 80, resolved: false }
  const row = { active, queued: 0, pooled: 0, arrivals: 5, mayHide: false }
  return { members: new Map([[refKey(REF), { ref: REF, state, own: 'drain', row }]]) }
}

test.each([['10.0.0.1'], ['2001:db8::1']])(
  'a row of an old process counts again once its server is back at %s',
  async (address) => {
    const offRow = new OffRowWork()
    const channel = { run: () => Promise.resolve({ replies: ['', EMPTY] }) }
    const ctx = { clock: fakeClock(), signal: new AbortController().signal }
    const old = shownAt(address, 1)
    const note = (serves: object, isOpen: boolean) =>
      offRow.note(
        ...([
          [REF],
          { shown: old, view: { moves: () => 0 }, serves, isOpen },
          channel,
          ctx,
        ] as unknown as Looked),
      )
    await note(shownAt('10.0.0.9', 0), true)
    expect(offRow.isOwn(REF)).toBe(false)
    await note(shownAt(address, 0), false)
    expect(offRow.isOwn(REF)).toBe(true)
  },
)
