import { failOver } from './cm.js'
import { Config } from '../device/config.js'
import { link, ok, word, type Call } from '../rest/call.js'
import { configError, entries, row, type Answer } from '../rest/replies.js'
import type { Flow } from '../device/unit.js'

/** `/mgmt/tm/sys...` */
export function sys(call: Call): Answer | undefined {
  const [, , area] = call.segments
  const get = call.method === 'GET'
  switch (area) {
    case undefined:
      return get ? ok(sysCollection(call)) : undefined
    case 'version':
      return get ? ok(version(call)) : undefined
    case 'ready':
      return get ? ok(ready(call)) : undefined
    case 'failover':
      return failover(call)
    case 'connection':
      return connections(call)
    case 'config':
      return call.method === 'POST' ? saveConfig(call) : undefined
    case 'provision':
      return get ? ok(provision(call)) : undefined
    case 'global-settings':
      return get ? ok(globalSettings(call)) : undefined
    case 'cluster':
      return get
        ? ok({
            kind: 'tm:sys:cluster:clustercollectionstate',
            selfLink: link(call, 'tm/sys/cluster'),
            items: [],
          })
        : undefined
    default:
      return undefined
  }
}

/** `POST /mgmt/tm/util/bash`, as F5's Ansible modules save the configuration. */
export function bash(call: Call): Answer | undefined {
  if (call.method !== 'POST') return undefined
  const args = word(call, 'utilCmdArgs') ?? ''
  const ran = { kind: 'tm:util:bash:runstate', command: 'run', utilCmdArgs: args }
  if (!/save \/?sys config/.test(args)) return ok(ran)
  save(call)
  const files = ['bigip.conf', 'bigip_base.conf', 'bigip_user.conf']
  const lines = ['Saving running configuration...', ...files.map((file) => `  /config/${file}`)]
  return ok({ ...ran, commandResult: `${lines.join('\n')}\n` })
}

/** A `show` command whose answer is the text of tmsh. */
export function raw(call: Call, kind: string, text: string): object {
  return {
    kind: `tm:${kind}stats`,
    selfLink: link(call, call.path.replace(/^\/mgmt\//, '')),
    apiRawValues: { apiAnonymous: text },
  }
}

function sysCollection(call: Call): object {
  const areas = ['cluster', 'config', 'connection', 'failover', 'provision', 'ready', 'version']
  return {
    kind: 'tm:sys:syscollectionstate',
    selfLink: link(call, 'tm/sys'),
    items: areas.map((area) => ({ reference: { link: link(call, `tm/sys/${area}`) } })),
  }
}

function version(call: Call): object {
  return row(
    link(call, 'tm/sys/version'),
    'sys:version:version',
    'tm/sys/version',
    entries({
      Build: '0.0.4',
      Date: 'Mon Mar 13 09:12:44 PDT 2023',
      Edition: 'Point Release 4',
      Product: 'BIG-IP',
      Title: 'Main Package',
      Version: call.lab.release,
    }),
  )
}

function ready(call: Call): object {
  const config = call.unit.stage === 'up' ? 'yes' : 'no'
  return row(
    link(call, 'tm/sys/ready'),
    'sys:ready:ready',
    'tm/sys/ready',
    entries({ configReady: config, licenseReady: 'yes', provisionReady: 'yes' }),
  )
}

/** The text of `show sys failover`; `run sys failover standby` gives the role away. */
function failover(call: Call): Answer | undefined {
  if (call.method === 'GET') return ok(raw(call, 'sys:failover:failover', failoverText(call)))
  if (call.method !== 'POST') return undefined
  const standby = call.body['standby'] === true || word(call, 'utilCmdArgs') === 'standby'
  if (word(call, 'command') !== 'run' || !standby) throw configError(400, 'invalid command')
  if (call.unit.role === 'active') failOver(call.lab)
  return ok({ kind: 'tm:sys:failover:runstate', command: 'run', standby: true })
}

function failoverText(call: Call): string {
  const seconds = Math.floor((Date.now() - call.unit.roleSince) / 1_000)
  const two = (n: number): string => String(n).padStart(2, '0')
  const clock = [Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60, seconds % 60]
  return `Failover ${call.unit.role} for ${Math.floor(seconds / 86_400)}d ${clock.map(two).join(':')}\n`
}

function provision(call: Call): object {
  return {
    kind: 'tm:sys:provision:provisioncollectionstate',
    selfLink: link(call, 'tm/sys/provision'),
    items: [
      {
        kind: 'tm:sys:provision:provisionstate',
        name: 'ltm',
        fullPath: 'ltm',
        generation: 1,
        selfLink: link(call, 'tm/sys/provision/ltm'),
        cpuRatio: 0,
        diskRatio: 0,
        level: 'nominal',
        memoryRatio: 0,
      },
    ],
  }
}

function globalSettings(call: Call): object {
  return {
    kind: 'tm:sys:global-settings:global-settingsstate',
    selfLink: link(call, 'tm/sys/global-settings'),
    hostname: call.unit.name,
  }
}

function saveConfig(call: Call): Answer {
  const command = word(call, 'command')
  if (command !== 'save' && command !== 'load') {
    throw configError(400, `invalid command "${command ?? ''}"`)
  }
  if (command === 'save') save(call)
  else if (call.unit.saved !== undefined) call.unit.config.copyFrom(call.unit.saved)
  return ok({ kind: `tm:sys:config:${command}state`, command })
}

function save(call: Call): void {
  const copy = new Config()
  copy.copyFrom(call.unit.config)
  call.unit.saved = copy
}

/** Lists or deletes flows. A DELETE without options empties the device's whole table. */
function connections(call: Call): Answer | undefined {
  const matches = toFilter(call.query.get('options'))
  if (call.method === 'DELETE') {
    if (call.lab.options.connectionDelete === false) {
      throw configError(400, 'Operation is not supported on component /sys/connection.')
    }
    if (call.lab.options.connectionDelete !== 'nothing') call.unit.cut(matches)
    return { status: 200 }
  }
  if (call.method !== 'GET') return undefined
  const found = [...call.unit.flows]
    .filter(matches)
    .map((flow, i) => [
      `https://localhost/mgmt/tm/sys/connection/${i}`,
      { nestedStats: { entries: entries(flowFields(flow)) } },
    ])
  return ok({
    kind: 'tm:sys:connection:connectionstats',
    selfLink: link(call, 'tm/sys/connection'),
    entries: Object.fromEntries(found) as object,
  })
}

function toFilter(options: string | null): (flow: Flow) => boolean {
  const wanted = toWords(options, FILTERS)
  return (flow) => {
    const fields = new Map<string, string>([
      ['ss-server-addr', flow.address],
      ['ss-server-port', String(flow.port)],
      ['cs-client-addr', '192.0.2.1'],
      ['cs-client-port', String(1_024 + (flow.id % 60_000))],
      ['protocol', 'tcp'],
    ])
    return [...wanted].every(([key, value]) => fields.get(key) === value)
  }
}

/** The words of tmsh after a command: names and their values. */
export function toWords(
  options: string | null,
  known: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const words = (options ?? '').split(/\s+/).filter((w) => w !== '')
  const wanted = new Map<string, string>()
  for (let i = 0; i < words.length; i += 2) {
    const key = words[i] ?? ''
    const value = words[i + 1]
    if (!known.has(key)) throw configError(400, `Syntax Error: "${key}" unknown property`)
    if (value === undefined) throw configError(400, `Syntax Error: "${key}" requires a value`)
    wanted.set(key, value)
  }
  return wanted
}

const FILTERS = new Set([
  ...['ss-server-addr', 'ss-server-port', 'ss-client-addr', 'ss-client-port', 'protocol'],
  ...['cs-server-addr', 'cs-server-port', 'cs-client-addr', 'cs-client-port', 'age', 'type'],
])

function flowFields(flow: Flow): Record<string, string | number> {
  const port = 1_024 + (flow.id % 60_000)
  return {
    connectionId: 0,
    csBytesIn: 416,
    csBytesOut: 0,
    csClientAddr: '192.0.2.1',
    csClientPort: port,
    csServerAddr: '198.51.100.10',
    csServerPort: 80,
    idleTime: 0,
    idleTimeout: 300,
    protocol: 6,
    slot: '1',
    ssClientAddr: '192.0.2.1',
    ssClientPort: port,
    ssServerAddr: flow.address,
    ssServerPort: flow.port,
    tmm: flow.id % 2,
    type: 'self',
    unitId: 0,
  }
}

/** `GET /mgmt/tm/cli/version`. */
export function cliVersion(call: Call): Answer | undefined {
  if (call.method !== 'GET' || call.segments[2] !== 'version') return undefined
  const { release } = call.lab
  const fields = entries({ active: release, latest: release, supported: release })
  return ok(row(link(call, 'tm/cli/version'), 'cli:version:version', 'tm/cli/version', fields))
}
