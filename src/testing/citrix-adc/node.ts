import type { IncomingHttpHeaders } from 'node:http'
import type { IncomingRequest } from '../http/request.js'
import { Config, type Plain } from './config.js'
import type { Entity } from './entity.js'
import { type Envelope, openEnvelope } from './envelope.js'
import { type Dialect, dialectOf, type FakeConfig, type FakeOptions } from './options.js'
import { shape } from './query.js'
import { CONFIG_READS, rowsOf, STAT_READS } from './reads.js'
import { done, NitroError, type Reply } from './reply.js'
import { ctime } from './rows.js'
import { type Session, Sessions } from './sessions.js'
import { systemRows } from './system-rows.js'
import { type Command, execute } from './writes.js'

type Saved = ReadonlyMap<string, ReadonlySet<string>>

/** One appliance: alone, or one of a pair. */
export class Node {
  readonly sessions: Sessions
  readonly partitions = new Map<string, Config>()
  address: string
  role: 'Primary' | 'Secondary'
  paired: boolean
  bootedAt = Date.now()
  transitionAt = Date.now()
  savedAt = Date.now()
  changed = false
  /** Whether the nodes of a pair hear each other. */
  peerHeard = true
  /** Gets what the primary was told; the secondary passes nothing on. */
  peer: Node | undefined
  readonly options: FakeOptions
  /** `hafailover?action=Force` */
  onForcedFailover: (() => void) | undefined
  readonly #dialect: Dialect
  readonly #frozen = new Map<string, { at: number; rows: readonly Plain[] }>()
  #saved: Saved = new Map()

  constructor(options: FakeOptions, address: string, role: 'Primary' | 'Secondary') {
    this.options = options
    this.address = address
    this.role = role
    this.paired = options.ha === true
    this.sessions = new Sessions(options)
    this.#dialect = dialectOf(options.version)
    const given: FakeConfig =
      options.pools === undefined && options.vservers === undefined
        ? { pools: { web: ['web1:80', 'web2:80'] } }
        : options
    this.partitions.set('default', new Config(options, given))
    for (const [name, seed] of Object.entries(options.partitions ?? {})) {
      this.partitions.set(name, new Config(options, seed))
    }
  }

  /** Answers one request; never throws. */
  answer(incoming: IncomingRequest): Reply {
    try {
      const envelope = openEnvelope(
        incoming.method,
        incoming.path,
        incoming.headers['content-type'] ?? '',
        incoming.text,
        oneOf(incoming.headers['x-nitro-onerror']),
      )
      if (envelope === undefined) return notFound()
      return this.#dispatch(envelope, incoming.headers)
    } catch (error) {
      if (error instanceof NitroError) return error.toReply()
      throw error
    }
  }

  tick(): void {
    for (const config of this.partitions.values()) config.tick()
  }

  /** Everything established is cut, as after a failover without mirrored connections. */
  dropAll(): void {
    for (const config of this.partitions.values()) {
      for (const { entity } of config.all()) entity.drop()
    }
  }

  /** Starts again from the saved configuration: whatever was not saved is forgotten. */
  reboot(): void {
    this.bootedAt = later(this.bootedAt)
    this.transitionAt = later(this.transitionAt)
    this.sessions.expire()
    this.dropAll()
    for (const [partition, config] of this.partitions) {
      const disabled = this.#saved.get(partition) ?? new Set<string>()
      for (const server of config.servers.values()) server.enabled = true
      for (const [key, entity] of keyed(config)) {
        entity.enabled = !disabled.has(key)
        entity.load.total = 0n
        if (entity.enabled) config.enter(entity)
        else entity.leave({ graceful: false, delay: 0 }, true, false)
      }
    }
    this.changed = false
  }

  save(): void {
    this.#saved = new Map(
      [...this.partitions].map(([partition, config]) => [
        partition,
        new Set(keyed(config).flatMap(([key, { disabled }]) => (disabled ? [key] : []))),
      ]),
    )
    this.savedAt = Date.now()
    this.changed = false
  }

  /** Carries a command out here and, on a primary, on the other node too. */
  run(partition: string, command: Command): void {
    const config = this.partitions.get(partition)
    if (!config) throw new NitroError(2755)
    execute(config, command, this.options)
    this.changed = true
    const told = this.role === 'Primary' && this.peerHeard
    const other = told ? this.peer?.partitions.get(partition) : undefined
    if (other) execute(other, command, this.options)
  }

  #dispatch(envelope: Envelope, headers: IncomingHttpHeaders): Reply {
    const { type, method, payload } = envelope
    if (type === 'login' && method === 'POST') return this.sessions.login(payload)
    const session = this.sessions.identify(headers, envelope.body)
    if (type === 'logout' && method === 'POST') {
      this.sessions.logout(session)
      return done(undefined, 201)
    }
    return method === 'GET' ? this.#read(envelope, session) : this.#write(envelope, session)
  }

  #read(envelope: Envelope, session: Session): Reply {
    const { tree, type, name, query } = envelope
    const config = this.partitions.get(session.partition)
    if (!config) throw new NitroError(2755)
    const reader = (tree === 'stat' ? STAT_READS : CONFIG_READS)[type]
    if (reader === undefined) {
      const rows = systemRows(this, tree, type, name)
      if (rows === undefined) throw new NitroError(1232, type)
      return this.#rows(type, shape(rows, query))
    }
    if (tree === 'stat' && query.args.has('clearstats')) {
      for (const { entity } of config.all()) entity.load.total = 0n
    }
    const { bulk = {}, memberTotals = 'both' } = this.options
    const ask = { config, dialect: this.#dialect, name, query, bulk, memberTotals }
    const rows = tree === 'stat' ? this.#stat(session, envelope, () => reader(ask)) : reader(ask)
    return this.#rows(type, shape(rows, query))
  }

  #stat(
    session: Session,
    { type, name, query }: Envelope,
    read: () => readonly Plain[],
  ): readonly Plain[] {
    const every = this.options.statInterval ?? 0
    if (every === 0) return read()
    const words = [...query.words].map((pair) => pair.join('=')).join('&')
    const key = [session.partition, type, name ?? '', words].join('\0')
    const now = this.options.clock?.now?.() ?? Date.now()
    const kept = this.#frozen.get(key)
    if (kept && now - kept.at < every) return kept.rows
    const rows = read()
    this.#frozen.set(key, { at: now, rows })
    return rows
  }

  #rows(type: string, rows: readonly Plain[]): Reply {
    if (this.options.loneObjects === true && rows.length === 1) return done({ [type]: rows[0] })
    return done(rowsOf(type, rows))
  }

  #write(envelope: Envelope, session: Session): Reply {
    const { type, payload, warnings } = envelope
    const verb = verbOf(envelope)
    if (type === 'nspartition' && verb === 'Switch') return this.#switch(payload, session)
    if (session.rights === 'read-only') throw new NitroError(2138)
    if (this.options.cluster === 'nsip') throw new NitroError(1203)
    if (type === 'nsconfig' && verb === 'save') {
      this.save()
      return this.#ok(200)
    }
    if (type === 'hafailover' && verb === 'Force') {
      if (!this.paired) throw new NitroError(257)
      this.onForcedFailover?.()
      return this.#ok(200)
    }
    const rows = Array.isArray(payload) ? (payload as readonly Plain[]) : [payload as Plain]
    const commands = rows.map((row) => ({ type, verb, name: envelope.name, payload: row }))
    const [only] = commands
    if (only === undefined) throw new NitroError(1095)
    if (Array.isArray(payload) && this.options.bulk?.actions === false) throw new NitroError(1234)
    if (Array.isArray(payload)) return this.#bulk(commands, session, envelope)
    this.run(session.partition, only)
    if (warnings && this.role === 'Secondary') return secondaryWarning()
    return this.#ok(verb === 'add' ? 201 : 200)
  }

  #bulk(commands: readonly Command[], session: Session, { onError, warnings }: Envelope): Reply {
    const response: Plain[] = []
    let failed = false
    const { actions } = this.options.bulk ?? {}
    for (const command of actions === 'first' ? commands.slice(0, 1) : commands) {
      try {
        this.run(session.partition, command)
        response.push({ errorcode: 0, message: 'Done', severity: 'NONE' })
      } catch (error) {
        if (!(error instanceof NitroError)) throw error
        failed = true
        response.push(error.toReply().body as Plain)
        if (onError === 'exit') break
      }
    }
    if (!failed && warnings && this.role === 'Secondary') return secondaryWarning()
    if (!failed) return this.#ok(commands[0]?.verb === 'add' ? 201 : 200)
    const message = 'Bulk operation failed'
    return { status: 207, body: { errorcode: 1243, message, severity: 'ERROR', response } }
  }

  #switch(payload: Plain | readonly Plain[], session: Session): Reply {
    const wanted = (payload as Plain)['partitionname']
    if (typeof wanted !== 'string') throw new NitroError(1095, 'partitionName')
    if (!this.partitions.has(wanted)) throw new NitroError(2755)
    session.partition = wanted
    return this.#ok(200)
  }

  #ok(status: number): Reply {
    return this.options.actionReply === 'empty' ? { status } : done(undefined, status)
  }
}

function verbOf({ method, action, type }: Envelope): string {
  if (method === 'DELETE') return 'delete'
  if (method === 'PUT') return type.endsWith('_binding') ? 'add' : 'set'
  if (method !== 'POST') throw new NitroError(1240, method)
  if (action === undefined) return 'add'
  // Actions are written in lower case, apart from those that the documentation capitalizes.
  return ['Switch', 'Force'].includes(action) ? action : action.toLowerCase()
}

/** Rights enough, wrong place: the command holds on this node alone. */
function secondaryWarning(): Reply {
  const message =
    'You are connected to a secondary node; configuration changes made in this session will not be propagated to, or saved on, other nodes'
  return {
    status: 209,
    headers: { 'x-nitro-warning': `1028 - ${message}` },
    body: { errorcode: 1028, message, severity: 'WARNING' },
  }
}

function notFound(): Reply {
  return {
    status: 404,
    headers: { 'content-type': 'text/html' },
    body: `<!DOCTYPE HTML><html><head><title>404 Not Found</title></head><body><h1>Not Found</h1><p>${ctime(Date.now())}</p></body></html>`,
  }
}

function keyed(config: Config): [string, Entity][] {
  return [
    ...[...config.groups.values()].flatMap((group) =>
      group.members.map(
        (one) => [`${group.name}\0${one.server.name}\0${one.port}`, one] as [string, Entity],
      ),
    ),
    ...[...config.services.values()].map(
      ({ name, entity }) => [`\0${name}`, entity] as [string, Entity],
    ),
  ]
}

function oneOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}

/** Now, told apart from an earlier moment even where moments are written in whole seconds. */
export function later(than: number): number {
  return Math.max(Date.now(), than + 1_000)
}
