import { ok, refuse, type Answer } from './answer.js'
import type { HaproxyConfig, ServerLine } from './haproxy-config.js'
import { HaproxyConfig as Config, milliseconds } from './haproxy-config.js'
import { invalid, readBody, target, textOf, type Api, type Call } from './call.js'
import { command } from './runtime-view.js'

/** Keys whose change is applied at run time; any other one needs a reload. */
const AT_RUNTIME = new Set(['weight', 'address', 'port', 'maintenance', 'health_check_port'])

export function list(api: Api, call: Call): Answer {
  const { backend } = target(api, call)
  const servers = api.store.seen(call.query).servers(backend)
  // seen with 3.4.2: null for a backend without lines of servers, [] for one that is not there
  const isNull = api.generation.chi && servers?.length === 0
  return bare(api, isNull ? null : (servers ?? []))
}

export function one(api: Api, call: Call): Answer {
  return bare(api, findServer(api, call, api.store.seen(call.query)))
}

export function backend(api: Api, call: Call): Answer {
  const [name = ''] = call.names
  const config = api.store.seen(call.query)
  if (!config.names('backend').includes(name)) {
    refuse(404, `missing object: backend ${name} does not exist`)
  }
  const mode = config.setting('backend', name, 'mode') ?? 'http'
  const defaultServer = config.defaultServer('backend', name)
  const from = config.defaultsOf(name)
  return bare(api, {
    name,
    mode,
    ...(from === undefined ? {} : { from }),
    ...(defaultServer && { default_server: defaultServer }),
  })
}

/** Times in milliseconds; what is not set is absent. */
export function global(api: Api, call: Call): Answer {
  const stop = api.store.seen(call.query).setting('global', '', 'hard-stop-after')
  return bare(api, { daemon: true, ...(stop && { hard_stop_after: milliseconds(stop) }) })
}

export function defaults(api: Api, call: Call): Answer {
  const sections = defaultsSections(api, call)
  return bare(api, api.generation.tree === 'v2' ? sections[0] : sections)
}

export function namedDefaults(api: Api, call: Call): Answer {
  return bare(api, defaultsSections(api, call))
}

export async function add(api: Api, call: Call): Promise<Answer> {
  const { backend: name } = target(api, call)
  const body = readServer(api, call)
  const under = api.store.under(withVersion(api, call))
  const config = api.store.base(under)
  if (config.servers(name) === undefined) refuse(400, `missing parent: backend ${name}`)
  if (config.servers(name)?.some((server) => server.name === body.name)) {
    refuse(409, `object already exists: server ${body.name} already exists in ${name} backend`)
  }
  api.store.write(under, config.withServer(name, body.name, body))
  if ('transaction' in under) return ok(body, 202)
  if (forced(call)) return reloaded(api, ok(body, 201))
  const plain =
    !config.defaultServer('defaults', config.defaultsOf(name) ?? '') &&
    !config.defaultServer('backend', name)
  if (api.generation.tree === 'v3' && plain && (await addAtRuntime(api, name, body))) {
    return ok(body, 201)
  }
  return pending(api, body)
}

export async function replace(api: Api, call: Call): Promise<Answer> {
  const { backend: name, server } = target(api, call)
  const body = readServer(api, call)
  const under = api.store.under(withVersion(api, call))
  const config = api.store.base(under)
  const before = findServer(api, call, config)
  api.store.write(under, config.withServer(name, server, body))
  if ('transaction' in under) return ok(body, 202)
  const keys = [...new Set([...Object.keys(before), ...Object.keys(body)])]
  const changed = keys.filter((key) => before[key] !== body[key])
  // seen with 2.9 to 3.2: a line without its weight is not applied at run time, whatever else it says
  const live =
    body['weight'] !== undefined &&
    changed.every((key) => AT_RUNTIME.has(key)) &&
    (await applyNow(api, name, body, changed))
  if (live) return ok(body)
  if (forced(call)) return reloaded(api, ok(body))
  return pending(api, body)
}

export function remove(api: Api, call: Call): Answer | Promise<Answer> {
  const { backend: name, server } = target(api, call)
  const under = api.store.under(withVersion(api, call))
  const config = api.store.base(under)
  findServer(api, call, config)
  api.store.write(under, config.withServer(name, server, undefined))
  if ('transaction' in under) return { status: 202 }
  return forced(call) ? reloaded(api, { status: 204 }) : pending(api, undefined)
}

export function addBackend(api: Api, call: Call): Answer | Promise<Answer> {
  const body = readBody(api, call.text)
  const under = api.store.under(withVersion(api, call))
  const name = textOf(body['name']) ?? ''
  api.store.write(under, api.store.base(under).withBackend(name, textOf(body['mode']) ?? 'http'))
  if ('transaction' in under) return ok(body, 202)
  return forced(call) ? reloaded(api, ok(body, 201)) : pending(api, body)
}

export function commit(api: Api, call: Call): Answer | Promise<Answer> {
  const [id = ''] = call.names
  const body = api.store.commit(id)
  return forced(call) ? reloaded(api, ok(body)) : pending(api, body)
}

export function rawText(api: Api): Answer {
  return bare(api, api.store.text)
}

/** The whole file at once, with what to do instead of a reload. */
export async function rawPush(api: Api, call: Call): Promise<Answer> {
  const { store } = api
  const config = new Config(call.text)
  if (call.query.get('only_validate') === 'true') return ok(call.text, 202)
  store.write(store.under(call.query), config)
  if (call.query.get('skip_reload') !== 'true') return pending(api, call.text)
  for (const action of call.actions) {
    const [verb, ...words] = action.trim().split(/\s+/)
    if (verb !== 'SetServerState') continue
    const [name = '', server = '', state = ''] = words
    try {
      await command(api.cli, `set server ${name}/${server} state ${state}`)
    } catch {
      refuse(
        500,
        `cannot execute ${verb}: ${api.cli.socket} [3]  No such server. [set server ${name}/${server} state ${state}]`,
      )
    }
  }
  return ok(call.text, 201)
}

function defaultsSections(api: Api, call: Call): Record<string, unknown>[] {
  const config = api.store.seen(call.query)
  const sections = config.defaultsNames().map((name) => {
    const defaultServer = config.defaultServer('defaults', name)
    return { name, ...(defaultServer && { default_server: defaultServer }) }
  })
  return sections.length === 0 ? [{ name: 'unnamed_defaults_1' }] : sections
}

/** v2 wraps every configuration value. */
function bare(api: Api, data: unknown): Answer {
  return ok(api.generation.tree === 'v2' ? { _version: api.store.version, data } : data)
}

function findServer(api: Api, call: Call, config: HaproxyConfig): ServerLine {
  const { backend: name, server } = target(api, call)
  const found = config.servers(name)?.find((line) => line.name === server)
  return found ?? refuse(404, `missing object: server ${server} does not exist in ${name} backend`)
}

function readServer(api: Api, call: Call): ServerLine {
  const body = readBody(api, call.text)
  if (typeof body['name'] !== 'string') invalid(api, 'name in body is required', 602)
  if (/\s/.test(textOf(body['address']) ?? '')) {
    invalid(api, "address in body should match '^[^\\s]+$'", 605)
  }
  const server: Record<string, string | number> = {}
  for (const [key, value] of Object.entries(body)) {
    if (typeof value === 'string' || typeof value === 'number') server[key] = value
  }
  return { ...server, name: body['name'] }
}

function withVersion(api: Api, { query }: Call): URLSearchParams {
  const version = query.get('version')
  if (version !== null && !/^-?\d+$/.test(version)) {
    if (api.generation.chi) {
      refuse(
        400,
        `Invalid format for parameter version: error binding string parameter: strconv.ParseInt: parsing "${version}": invalid syntax`,
      )
    }
    refuse(422, `version in query must be of type int64: "${version}"`, 601)
  }
  return query
}

function forced({ query }: Call): boolean {
  return query.get('force_reload') === 'true'
}

function pending(api: Api, body: unknown): Answer {
  return { status: 202, body, headers: { 'Reload-Id': api.reloads.request() } }
}

async function reloaded(api: Api, answer: Answer): Promise<Answer> {
  await api.reloads.force()
  return answer
}

async function addAtRuntime(api: Api, name: string, server: ServerLine): Promise<boolean> {
  const { address, port, weight, check } = server
  const words = [`${String(address)}${port === undefined ? '' : `:${port}`}`]
  if (check === 'enabled') words.push('check')
  if (weight !== undefined) words.push(`weight ${weight}`)
  return tried(() => command(api.cli, `add server ${name}/${server.name} ${words.join(' ')}`))
}

async function applyNow(
  api: Api,
  name: string,
  server: ServerLine,
  changed: readonly string[],
): Promise<boolean> {
  const at = `${name}/${server.name}`
  return tried(async () => {
    if (changed.includes('weight')) {
      await command(api.cli, `set server ${at} weight ${server['weight'] ?? 1}`)
    }
    if (changed.includes('address') || changed.includes('port')) {
      const { address, port } = server
      await command(api.cli, `set server ${at} addr ${String(address)} port ${String(port)}`)
    }
    if (changed.includes('maintenance')) {
      const state = server['maintenance'] === 'enabled' ? 'maint' : 'ready'
      await command(api.cli, `set server ${at} state ${state}`)
    }
  })
}

async function tried(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run()
    return true
  } catch {
    return false
  }
}
