import type { StatRow } from './stat-row.js'

/** What a column is, where it is not a counter: origin, nature and scope by their letters, then the type of its value. */
const KINDS: Readonly<Record<string, string>> = {
  'KNS:str': 'pxname svname',
  'MGP:u32':
    'scur qcur srv_icur idle_conn_cur safe_conn_cur used_conn_cur need_conn_est ' +
    'agg_server_status agg_server_check_status agg_check_status',
  'MMP:u32':
    'smax req_rate_max conn_rate_max qmax qtime_max ctime_max rtime_max ttime_max rate_max',
  'CLP:u32': 'slim rate_lim',
  'SGP:str': 'status',
  'SGP:u32': 'act bck',
  'KGP:u32': 'pid',
  'KGS:u32': 'iid sid',
  'CGS:u32': 'type check_rise check_fall check_health',
  'MRP:u32': 'rate req_rate conn_rate',
  'CGS:str': 'mode addr algo',
  'MGP:u64':
    'quic_half_open_conn h2_open_connections h2_backend_open_streams h1_open_connections ' +
    'h1_open_streams',
  'MaP:u32': 'weight qtime ctime rtime ttime uweight',
  'MAP:u32': 'lastchg',
  'MCP:u32': 'downtime srid',
  'MOP:str': 'check_status last_chk check_desc',
  'MDP:u64': 'check_duration',
  'MAP:s32': 'lastsess',
  'CNS:str': 'tracked cookie',
}

const COUNTER = 'MCP:u64'
const KIND_OF = new Map(
  Object.entries(KINDS).flatMap(([kind, names]) => names.split(' ').map((name) => [name, kind])),
)

const ORIGINS: Readonly<Record<string, string>> = {
  ...{ K: 'Key', M: 'Metric', S: 'Status', C: 'Config' },
}
const NATURES: Readonly<Record<string, string>> = {
  ...{ N: 'Name', G: 'Gauge', M: 'Max', L: 'Limit', C: 'Counter', R: 'Rate' },
  ...{ a: 'Avg', A: 'Age', D: 'Duration', O: 'Output' },
}
const SCOPES: Readonly<Record<string, string>> = { S: 'Service', P: 'Process' }

interface Field {
  readonly pos: number
  readonly name: string
  readonly kind: string
  readonly value: string | number
}

/** One line a field: `S.3.1.4.scur.1:MGP:u32:0`. */
export function formatTyped(rows: readonly StatRow[], columns: readonly string[]): string {
  const lines = rows.flatMap((row) => {
    const { object, iid, sid } = row
    return fieldsOf(row, columns).map(({ pos, name, kind, value }) => {
      return `${object.charAt(0)}.${iid}.${sid}.${pos}.${name}.1:${kind}:${value}\n`
    })
  })
  return lines.join('')
}

/** One array a row, one object a field. */
export function formatJson(rows: readonly StatRow[], columns: readonly string[]): string {
  const all = rows.map((row) =>
    fieldsOf(row, columns).map(({ pos, name, kind, value }) => {
      const [letters = '', type = ''] = kind.split(':')
      return {
        objType: row.object,
        proxyId: row.iid,
        id: row.sid,
        field: { pos, name },
        processNum: 1,
        tags: {
          origin: ORIGINS[letters.charAt(0)],
          nature: NATURES[letters.charAt(1)],
          scope: SCOPES[letters.charAt(2)],
        },
        value: { type, value },
      }
    }),
  )
  return `${JSON.stringify(all)}\n`
}

/** The fields that have a value; `-` only ends the columns of one kind, and is not counted among them. */
function fieldsOf(row: StatRow, columns: readonly string[]): readonly Field[] {
  const end = columns.indexOf('-')
  const isChecked = row.values[columns.indexOf('check_status')] !== ''
  return columns.flatMap((name, at): readonly Field[] => {
    const value = row.values[at] ?? ''
    // Of a check that passed there is nothing to say, and that is said.
    const isSaid = value !== '' || (name === 'last_chk' && isChecked)
    if (!isSaid || at === end) return []
    return [{ pos: at > end ? at - 1 : at, name, kind: kindOf(row, name), value }]
  })
}

function kindOf({ object }: StatRow, name: string): string {
  if (object === 'Backend' && (name === 'act' || name === 'bck')) return 'MGP:u32'
  if (object === 'Frontend' && name === 'rate_max') return 'MGP:u32'
  return KIND_OF.get(name) ?? COUNTER
}
