import type { IncomingRequest } from '../../http/request.js'
import { denied, identify, login, tokens } from './auth.js'
import { autoSync, cm } from '../tm/cm.js'
import { ok, type Call, type Lab, type Route } from './call.js'
import { nodes, pools } from '../tm/ltm.js'
import {
  configError,
  frameworkError,
  html,
  notRegistered,
  Refusal,
  type Answer,
} from './replies.js'
import { ltmOthers } from '../tm/ltm-others.js'
import { bash, cliVersion, sys } from '../tm/sys.js'
import { enqueue, transactions } from './transaction.js'
import type { Unit } from '../device/unit.js'

/** One request through the layers of a device: web server, REST framework, configuration service. */
export function handle(lab: Lab, unit: Unit, request: IncomingRequest): Answer {
  try {
    return answer(lab, unit, request)
  } catch (error) {
    if (error instanceof Refusal) return error.answer
    if (error instanceof URIError) return html(400, '400 Bad Request')
    throw error
  }
}

function answer(lab: Lab, unit: Unit, request: IncomingRequest): Answer {
  if (unit.stage === 'proxy') return html(503, 'Configuration Utility restarting...')
  const [path = '/', query = ''] = request.path.split(/\?(.*)/s)
  if (!path.startsWith('/mgmt/')) return html(404, '404 Not Found')
  if (unit.stage === 'framework') {
    return frameworkError(
      404,
      `URI path ${path} not registered.  Please verify URI is supported and wait for /available suffix to be responsive.`,
    )
  }
  const wire = path
    .split('/')
    .slice(2)
    .filter((segment) => segment !== '')
  const base = {
    lab,
    unit,
    method: request.method,
    path: path.replace(/\/$/, ''),
    wire,
    segments: ['', ...wire.map(decodeURIComponent)].slice(1),
    query: new URLSearchParams(query),
    body: parseBody(request.text),
    authorization: request.headers.authorization,
  }
  if (base.path === '/mgmt/shared/authn/login' && request.method === 'POST') {
    return login(base)
  }
  const token = request.headers['x-f5-auth-token']
  const caller = identify(lab, unit, base.path, {
    token: typeof token === 'string' ? token : undefined,
    authorization: request.headers.authorization,
  })
  if ('refused' in caller) return caller.refused
  const call: Call = { ...base, user: caller.user, token: caller.token }
  const refusal = refusedByRole(call)
  if (refusal !== undefined) return refusal
  if (unit.stage === 'loading') refuseWhileLoading(call)
  const coordination = request.headers['x-f5-rest-coordination-id']
  if (
    typeof coordination === 'string' &&
    request.method !== 'GET' &&
    call.segments[1] !== 'transaction'
  ) {
    return enqueue(call, coordination, request.path)
  }
  return dispatch(call)
}

function dispatch(call: Call): Answer {
  const run = (method: string, uri: string, body: unknown): Answer => {
    const [path = '', query = ''] = uri.split(/\?(.*)/s)
    const wire = path
      .split('/')
      .slice(2)
      .filter((segment) => segment !== '')
    return dispatch({
      ...call,
      method,
      path,
      wire,
      segments: wire.map(decodeURIComponent),
      query: new URLSearchParams(query),
      body: body as Call['body'],
    })
  }
  if (call.segments.at(-1) === 'available' && call.method === 'GET') return ok({})
  const route = routeOf(call, run)
  const given = route?.(call)
  if (given === undefined) return notRegistered(call.path)
  if (call.method !== 'GET' && call.segments[0] === 'tm') autoSync(call.lab, call.unit)
  return given
}

// eslint-disable-next-line complexity -- the table of paths
function routeOf(
  call: Call,
  run: (method: string, uri: string, body: unknown) => Answer,
): Route | undefined {
  const [root, module, area, sub] = call.segments
  if (root === 'shared') {
    if (module === 'authz' && area === 'tokens') return tokens
    if (module === 'bigip-failover-state') return failoverState
    if (module === 'echo-query') return echo
    if (module === 'identified-devices') return deviceInfo
    return undefined
  }
  if (root !== 'tm') return undefined
  switch (module) {
    case 'ltm':
      return area === 'pool' ? pools : area === 'node' ? nodes : ltmOthers
    case 'sys':
      return sys
    case 'cm':
      return cm
    case 'auth':
      return area === 'user' ? users : undefined
    case 'cli':
      return cliVersion
    case 'transaction':
      return (it) => transactions(it, run)
    case 'util':
      return area === 'bash' ? bash : undefined
    case 'net':
      return area === 'tunnels' && sub !== undefined ? emptyTunnels : undefined
    default:
      return undefined
  }
}

/** `/mgmt/tm/auth/user/<name>`: the one user that there is. */
function users(call: Call): Answer | undefined {
  const { username, role } = call.lab.options
  if (call.method !== 'GET') return undefined
  if (call.segments[3] !== username) {
    throw configError(
      404,
      `01020036:3: The requested user (${call.segments[3] ?? ''}) was not found.`,
      3,
    )
  }
  return ok({
    kind: 'tm:auth:user:userstate',
    name: username,
    fullPath: username,
    partitionAccess: [{ name: 'all-partitions', role }],
  })
}

/** Polled once an hour by the device itself, so it tells what was. */
function failoverState(call: Call): Answer {
  return ok({
    isEnabled: true,
    pollCyclePeriodMillis: 3_600_000,
    failoverState: 'active',
    generation: 0,
    lastUpdateMicros: call.unit.tokens.now(),
  })
}

/** `GET /mgmt/shared/identified-devices/config/device-info`. */
function deviceInfo(call: Call): Answer | undefined {
  if (call.segments[2] !== 'config' || call.segments[3] !== 'device-info') return undefined
  return ok({
    hostname: call.unit.name,
    managementAddress: call.lab.options.host,
    product: 'BIG-IP',
    platformMarketingName: 'BIG-IP Virtual Edition',
    version: call.lab.release,
    build: '0.0.4',
    generation: 0,
    kind: 'shared:resolver:device-groups:deviceinfostate',
    selfLink: 'https://localhost/mgmt/shared/identified-devices/config/device-info',
  })
}

/** Where clients try their credentials. */
function echo(call: Call): Answer {
  return ok({ stage: 'STARTED', generation: 0, lastUpdateMicros: call.unit.tokens.now() })
}

function emptyTunnels(call: Call): Answer {
  const kind = call.segments[3] ?? ''
  return ok({
    kind: `tm:net:tunnels:${kind}:${kind}collectionstate`,
    selfLink: `https://localhost/mgmt/tm/net/tunnels/${kind}?ver=${call.lab.release}`,
  })
}

function parseBody(text: string): Readonly<Record<string, unknown>> {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>
    }
  } catch {
    // answered below
  }
  throw configError(400, 'Found invalid JSON body in the request')
}

/** A guest only reads; an operator enables and disables members and nodes, and saves. */
function refusedByRole(call: Call): Answer | undefined {
  const { role } = call.lab.options
  const [root, module, area] = call.segments
  if (role === 'admin' || call.method === 'GET' || root !== 'tm') return undefined
  if (role === 'guest') return denied(call.lab, call.path, call.method)
  if (module === 'transaction') return undefined
  const words = Object.keys(call.body)
  const toggles =
    call.method === 'PATCH' &&
    module === 'ltm' &&
    (area === 'node' || (area === 'pool' && call.segments[4] === 'members')) &&
    words.every((key) => key === 'session' || key === 'state')
  if (toggles) return undefined
  return configError(
    403,
    `01070822:3: Access Denied: User (${call.user}) may not perform this operation with role operator`,
    3,
  ).answer
}

/** While the configuration loads, objects seem not to be there, and the list of pools is empty. */
function refuseWhileLoading(call: Call): void {
  const [, module, area, name, , member] = call.segments
  if (module !== 'ltm' || (area !== 'pool' && area !== 'node') || name === undefined) return
  const path = (segment: string): string => segment.replaceAll('~', '/')
  if (area === 'node') throw missing('Node', path(name))
  if (member === undefined || member === 'stats') throw missing('Pool', path(name))
  const full = path(member)
  throw missing('Pool Member', `${path(name)} ${full.replace(/[:.](\d+)$/, ' $1')}`)
}

function missing(what: string, name: string): Refusal {
  return configError(404, `01020036:3: The requested ${what} (${name}) was not found.`, 3)
}
