import type { CliReply, HaproxyCli } from './cli.js'
import { HaproxyConfig, type ServerLine } from './haproxy-config.js'
import { printInfo, serverRow } from './memory-print.js'
import { MASK, MemoryServer } from './memory-server.js'

/** What a backend of the HAProxy in memory is. */
interface Backend {
  readonly id: number
  readonly mode: string
  readonly algorithm: string
  readonly servers: Map<string, MemoryServer>
  nextId: number
}

const ERROR = 3

/**
 * A HAProxy without sockets: it understands the lines that the API sends, and keeps states and
 * counts. It judges by what it was told to hold, never by what a client believes.
 */
export class MemoryHaproxy implements HaproxyCli {
  readonly socket: string
  readonly version: string
  #config: HaproxyConfig
  #backends = new Map<string, Backend>()
  #pid = 20_000 + Math.floor(Math.random() * 10_000)
  #startedAt = Date.now()
  #down = false
  #thaw: PromiseWithResolvers<undefined> | undefined
  #refusal: string | undefined

  constructor(config: string, socket: string, version: string) {
    this.socket = socket
    this.version = version
    this.#config = new HaproxyConfig(config)
    this.#start()
  }

  get pid(): number {
    return this.#pid
  }

  /** Nothing listens on its socket. */
  set down(value: boolean) {
    this.#down = value
  }

  /** It accepts and does not answer; what was sent meanwhile is executed by {@link thaw}. */
  freeze(): void {
    this.#thaw ??= Promise.withResolvers()
  }

  thaw(): void {
    this.#thaw?.resolve(undefined)
    this.#thaw = undefined
  }

  /** The next reload is refused with this complaint. */
  refuseReload(complaint: string): void {
    this.#refusal = complaint
  }

  /** A server, for tests that play the clients and the other operators. */
  server(backend: string, name: string): MemoryServer | undefined {
    return this.#backends.get(backend)?.servers.get(name)
  }

  drop(backend: string, name: string): void {
    this.#backends.get(backend)?.servers.delete(name)
  }

  /** Pretends that the process is that old. */
  age(seconds: number): void {
    this.#startedAt = Date.now() - seconds * 1_000
  }

  async run(line: string): Promise<CliReply> {
    await this.#thaw?.promise
    if (this.#down) throw new Error(`dial unix ${this.socket}: connect: no such file or directory`)
    return this.#answer(line)
  }

  reload(config: string): Promise<string> {
    if (this.#refusal !== undefined) {
      const complaint = this.#refusal
      this.#refusal = undefined
      return Promise.reject(new Error(complaint))
    }
    this.#config = new HaproxyConfig(config)
    this.#pid += 7
    this.#startedAt = Date.now()
    this.#start()
    return Promise.resolve(
      `[NOTICE]   (1) : New worker (${this.#pid}) forked\n[NOTICE]   (1) : Loading success.`,
    )
  }

  #start(): void {
    this.#backends = new Map()
    let id = 1 + this.#config.names('frontend').length
    for (const name of this.#config.proxies()) {
      const servers = new Map<string, MemoryServer>()
      for (const line of this.#config.everyServer(name)) {
        const merged = {
          ...this.#config.defaultServer('defaults', this.#config.defaultsOf(name) ?? ''),
          ...this.#config.defaultServer('backend', name),
          ...line,
        }
        servers.set(line.name, new MemoryServer(merged, servers.size + 1, false))
      }
      this.#backends.set(name, {
        id: ++id,
        mode: this.#config.setting('backend', name, 'mode') ?? 'http',
        algorithm: this.#config.setting('backend', name, 'balance') ?? 'roundrobin',
        servers,
        nextId: servers.size + 1,
      })
    }
    for (const [name, { servers }] of this.#backends) {
      for (const server of servers.values()) {
        if (server.inMaint) this.inherit(`${name}/${server.name}`, server)
      }
    }
  }

  #answer(line: string): CliReply {
    const words = line.trim().split(/\s+/)
    const verb = words.slice(0, 2).join(' ')
    if (line === 'show info')
      return data(
        printInfo(this.version, this.#pid, Math.floor((Date.now() - this.#startedAt) / 1_000)),
      )
    if (line === 'show stat') return data(this.#stat())
    if (line.startsWith('show servers state')) return this.#state(words[3])
    if (verb === 'set server') return this.#set(words.slice(2))
    if (verb === 'add server') return this.#add(words.slice(2))
    if (verb === 'del server') return this.#delete(words[2] ?? '')
    return { severity: 6, text: `Unknown command: '${line}'` }
  }

  #stat(): string {
    const rows: Record<string, string | number>[] = []
    const counts = { bin: 0, bout: 0, rate: 0, rate_max: 0, smax: 0 }
    let iid = 1
    for (const name of this.#config.names('frontend')) {
      const mode = this.#config.setting('frontend', name, 'mode') ?? 'http'
      rows.push({
        pxname: name,
        svname: 'FRONTEND',
        ...counts,
        scur: 0,
        stot: 0,
        req_tot: 0,
        status: 'OPEN',
        pid: 1,
        iid: ++iid,
        sid: 0,
        type: 0,
        mode,
      })
    }
    for (const [name, backend] of this.#backends) {
      const servers = [...backend.servers.values()]
      for (const server of servers) rows.push({ ...counts, ...serverRow(name, backend, server) })
      const active = servers.filter((s) => s.usable && !s.backup)
      const backups = servers.filter((s) => s.usable && s.backup)
      rows.push({
        pxname: name,
        svname: 'BACKEND',
        ...counts,
        qcur: 0,
        qmax: 0,
        scur: sum(servers, 'scur'),
        stot: sum(servers, 'stot'),
        wretr: 0,
        wredis: 0,
        status: active.length + backups.length > 0 ? 'UP' : 'DOWN',
        weight: active.reduce((total, server) => total + server.weight, 0),
        act: active.length,
        bck: backups.length,
        chkdown: 0,
        lastchg: 6,
        downtime: 0,
        lastsess: -1,
        lbtot: 0,
        slim: 999,
        pid: 1,
        iid: backend.id,
        sid: 0,
        type: 1,
        mode: backend.mode,
        algo: backend.algorithm,
      })
    }
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
    const print = (row: Record<string, string | number>): string =>
      `${columns.map((column) => csv(row[column] ?? '')).join(',')},`
    return [`# ${columns.join(',')},`, ...rows.map(print)].join('\n')
  }

  #state(name: string | undefined): CliReply {
    const all =
      name === undefined ? [...this.#backends] : [...this.#backends].filter(([key]) => key === name)
    if (all.length === 0) return { severity: ERROR, text: "Can't find backend." }
    const rows = all.flatMap(([key, backend]) =>
      [...backend.servers.values()].map((server) =>
        [
          backend.id,
          key,
          server.id,
          server.name,
          server.address,
          server.op,
          server.mask,
          server.weight,
          server.initialWeight,
          server.lastChange,
          server.checked ? 6 : 1,
          server.checked ? 3 : 0,
          server.health,
          server.inMaint ? 14 : server.checked ? 6 : 0,
          0,
          0,
          0,
          '-',
          server.port,
          '-',
          0,
          0,
          '-',
          '-',
          0,
        ].join(' '),
      ),
    )
    return data(['1', `# ${STATE_COLUMNS}`, ...rows].join('\n'))
  }

  #set([target = '', what = '', ...values]: readonly string[]): CliReply {
    const server = this.#find(target)
    if (typeof server === 'string') return { severity: ERROR, text: server }
    const [value = ''] = values
    if (what === 'state') {
      if (value !== 'ready' && value !== 'drain' && value !== 'maint') {
        return {
          severity: ERROR,
          text: "'set server <srv> state' expects 'ready', 'drain' and 'maint'.",
        }
      }
      server.setState(value)
      this.inherit(target, server)
    } else if (what === 'health') server.setHealth(value as 'up' | 'down' | 'stopping')
    else if (what === 'weight') server.weight = Number(value)
    else if (what === 'addr') {
      server.address = value
      if (values[1] === 'port') server.port = Number(values[2])
    } else
      return { severity: ERROR, text: 'usage: set server <backend>/<server> addr | agent | ...' }
    return data('')
  }

  /** The servers that track this one go with it. */
  inherit(target: string, server: MemoryServer): void {
    const maint = server.inMaint ? MASK.inheritedMaint : 0
    const bits = maint | (server.drained ? MASK.inheritedDrain : 0)
    for (const [backend, { servers }] of this.#backends) {
      for (const other of servers.values()) {
        if (other.track !== target) continue
        other.inherit(bits)
        this.inherit(`${backend}/${other.name}`, other)
      }
    }
  }

  #add([target = '', where = '', ...words]: readonly string[]): CliReply {
    const [name = '', server = ''] = target.split('/')
    const backend = this.#backends.get(name)
    if (backend === undefined) return { severity: ERROR, text: 'No such backend.' }
    if (where === '') {
      return { severity: ERROR, text: "'server' expects <name> and <addr>[:<port>] as arguments." }
    }
    if (backend.servers.has(server)) {
      return { severity: ERROR, text: 'Already exists a server with the same name in backend.' }
    }
    const line: ServerLine = new HaproxyConfig(
      `backend b\n server ${server} ${where} ${words.join(' ')}`,
    ).servers('b')?.[0] ?? { name: server }
    const added = new MemoryServer(line, this.#freeId(backend), true)
    if (words.includes('enabled')) added.setState('ready') // 2.6 alone knows this word
    backend.servers.set(server, added)
    return { severity: 6, text: 'New server registered.' }
  }

  #freeId(backend: Backend): number {
    const used = new Set([...backend.servers.values()].map((server) => server.id))
    let id = 1
    while (used.has(id)) id++
    return id
  }

  #delete(target: string): CliReply {
    const server = this.#find(target)
    if (typeof server === 'string') return { severity: ERROR, text: server }
    if (!(server.mask & MASK.maint)) {
      return { severity: ERROR, text: 'Only servers in maintenance mode can be deleted.' }
    }
    const all = [...this.#backends.values()].flatMap(({ servers }) => [...servers.values()])
    if (all.some(({ track }) => track === target)) {
      return {
        severity: ERROR,
        text: 'This server cannot be removed at runtime due to other configuration elements pointing to it.',
      }
    }
    if (server.scur + server.qcur > 0) {
      return {
        severity: ERROR,
        text: 'Server still has connections attached to it, cannot remove it.',
      }
    }
    const [backend = '', name = ''] = target.split('/')
    this.drop(backend, name)
    return { severity: 6, text: 'Server deleted.' }
  }

  #find(target: string): MemoryServer | string {
    const [backend = '', name] = target.split('/')
    if (name === undefined) return "Require 'backend/server'."
    const found = this.#backends.get(backend)
    if (found === undefined) return 'No such backend.'
    return found.servers.get(name) ?? 'No such server.'
  }
}

const STATE_COLUMNS =
  'be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port'

function data(text: string): CliReply {
  return { severity: undefined, text }
}

function csv(value: string | number): string {
  const text = String(value)
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function sum(servers: readonly MemoryServer[], key: 'scur' | 'stot'): number {
  return servers.reduce((total, server) => total + server[key], 0)
}
