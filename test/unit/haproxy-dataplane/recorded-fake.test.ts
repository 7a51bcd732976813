import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { request } from 'undici'
import { describe, expect, test } from 'vitest'
import { recordings, type Exchange } from '../../support/dataplane-recordings.js'
import { until } from '../../support/dataplane.js'

/** What stood in front of the recorder: see the readme of the recordings. */
const CONFIG = `global

defaults
  mode http

frontend fe_web
  mode http

frontend fe_tcp
  mode tcp

backend be_app
  mode http
  server s1 127.0.0.1:21501 check inter 1s weight 100
  server s2 127.0.0.1:21502 check inter 1s weight 100

backend be_tcp
  mode tcp
  balance leastconn
  server t1 127.0.0.1:21503
  server t2 127.0.0.1:21504

backend be_empty
  mode http

backend be_lsf
  mode tcp
  server t2 127.0.0.1:21504
`

/** Version of the configuration with which the recordings of a topic begin. */
const FIRST_VERSION: Readonly<Record<string, number>> = { '08': 8, '09': 10, '13': 2 }

/** Plays the recorded world to the fake, and asks it what the recorder asked. */
class Replay {
  readonly #fake: DataplaneFake
  readonly #version: string
  readonly #load = new Map<string, (() => Promise<void>)[]>()
  /** Ids that were given out in the recording, and by the fake. */
  readonly #ids = new Map<string, string>()

  constructor(fake: DataplaneFake, version: string) {
    this.#fake = fake
    this.#version = version
  }

  /** The clients that the recorded counts show. */
  async world({ note, response }: Exchange): Promise<void> {
    if (note?.startsWith('now idle')) for (const key of this.#load.keys()) await this.#set(key, 0)
    const entries = [response.body].flat() as { stats?: RecordedRow[] }[]
    for (const row of entries.flatMap((entry) => entry.stats ?? [])) {
      if (row.type !== 'server' || row.backend_name === undefined) continue
      // left over from the recording before
      if (row.stats['weight'] === 50)
        await this.#fake.run(`set server ${row.backend_name}/${row.name} weight 50`)
      await this.#set(`${row.backend_name}/${row.name}`, row.stats.scur ?? 0)
    }
  }

  async ask({
    request: asked,
    response,
  }: Exchange): Promise<{ status: number; headers: Record<string, unknown>; body: unknown }> {
    const headers: Record<string, string> = { ...asked.headers }
    const login = /^Basic <(.*)>$/.exec(headers['Authorization'] ?? '')?.[1]
    if (login !== undefined) {
      headers['Authorization'] = `Basic ${Buffer.from(login).toString('base64')}`
    } else if (asked.path.includes('/configuration/raw')) {
      headers['Authorization'] = `Basic ${Buffer.from('admin:adminpwd').toString('base64')}`
    }
    const reply = await request(`${this.#fake.url}${this.#translate(asked.path)}`, {
      method: asked.method as 'GET',
      headers,
      body: this.#body(asked.body),
    })
    const text = await reply.body.text()
    let body: unknown = text
    try {
      body = JSON.parse(text)
    } catch {
      // not JSON: compared as text
    }
    this.#learn(response, reply.headers, body)
    return { status: reply.statusCode, headers: reply.headers, body }
  }

  /** A transaction that failed in the recording before. */
  async prime(topic: string): Promise<void> {
    if (topic !== '08') return
    const tree = this.#version.startsWith('2') ? 'v2' : 'v3'
    const at = tree === 'v2' ? 'servers/s1?backend=be_app&' : 'backends/be_app/servers/s1?'
    const reply = await request(
      `${this.#fake.url}/${tree}/services/haproxy/configuration/${at}version=8`,
      {
        method: 'PUT',
        headers: {
          authorization: `Basic ${Buffer.from('admin:adminpwd').toString('base64')}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ name: 's1', address: '127.0.0.1', port: 21501, weight: 300 }),
      },
    )
    expect(reply.statusCode).toBe(400)
  }

  /** Ids of the fake, in the place of those that the recording has. */
  #translate(text: string): string {
    let result = text
    for (const [recorded, ours] of this.#ids) result = result.replaceAll(recorded, ours)
    return result
  }

  #learn(recorded: Exchange['response'], headers: Record<string, unknown>, body: unknown): void {
    const reload = recorded.headers['Reload-Id']
    if (reload !== undefined) this.#ids.set(reload, String(headers['reload-id']))
    const { id, status } = (recorded.body ?? {}) as { id?: string; status?: string }
    const ours = (body as { id?: string } | undefined)?.id
    if (status === 'in_progress' && id !== undefined && ours !== undefined) this.#ids.set(id, ours)
  }

  #body(body: unknown): string | null {
    if (body === undefined) return null
    if (typeof body === 'string') return this.#fake.config
    const { raw } = body as { raw?: string }
    return raw ?? JSON.stringify(body)
  }

  async #set(key: string, wanted: number): Promise<void> {
    const [pool, member] = key.split('/')
    const held = this.#load.get(key) ?? []
    this.#load.set(key, held)
    while (held.length > wanted) await held.pop()!()
    while (held.length < wanted)
      held.push(await this.#fake.occupy({ pool: pool!, member: member! }))
  }
}

interface RecordedRow {
  readonly type: string
  readonly name: string
  readonly backend_name?: string
  readonly stats: Readonly<Record<string, number>>
}

/** What must be equal: everything but ids, times, counters of the past, and the words of haproxy -c and of listings. */
function essence({ request: asked }: Exchange, body: unknown): unknown {
  const path = asked.path.split('?')[0]!
  if (/^\/v\d(\/services\/haproxy(\/runtime)?)?$/.test(path))
    return Array.isArray(body) ? 'list' : body
  if (path.endsWith('/raw'))
    return /^\{"code"/.test(String(body)) ? 'error' : typeof body === 'object' ? 'error' : 'text'
  if (path.endsWith('/runtime/info')) return infos(body)
  if (path.endsWith('/stats/native')) return stats(body)
  return plain(body)
}

function plain(body: unknown): unknown {
  if (Array.isArray(body)) {
    return body.map(plain).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }
  if (typeof body === 'string') return words(body)
  if (typeof body !== 'object' || body === null) return body
  return Object.fromEntries(
    Object.entries(body)
      .filter(([key]) => !VOLATILE.has(key))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => [key, plain(value)]),
  )
}

const VOLATILE = new Set(
  'id reload_timestamp response last_time_change check_health check_state check_status check_result backend_id build_date'.split(
    ' ',
  ),
)

function words(text: string): string {
  return text
    .replace(/v\d+\.\d+\.\d+ \w+/, 'VERSION')
    .replace(/^validation error.*/s, 'VALIDATION')
    .replace(/(\S*[0-9a-f]{8}-[0-9a-f-]+)/g, 'UUID')
    .replace(/\[(?:[A-Z]+,?)+\]/, 'METHODS')
    .replace(/^(parsing data body|failed to decode).*/, '$1')
    .replace(/\/run\/lb\/\w+\.sock/g, 'SOCKET')
}

function infos(body: unknown): unknown {
  const list = [body].flat() as { info?: Record<string, unknown>; runtimeAPI: string }[]
  const shown = list.map(({ info }) => ({
    pid: typeof info?.['pid'],
    uptime: typeof info?.['uptime'],
    node: typeof info?.['node'],
    version: typeof info?.['version'],
  }))
  return { list: Array.isArray(body), shown }
}

/** Rows by name, with the figures that the adapter builds on. Other tests of the recorder left an fe and be or two more. */
function stats(body: unknown): unknown {
  const list = [body].flat() as { stats?: RecordedRow[]; message?: string; runtimeAPI: string }[]
  return {
    list: Array.isArray(body),
    message: list[0]?.message,
    rows: list.map((entry) =>
      entry.stats
        ?.filter(({ name, backend_name: backend }) =>
          /^(be_app|be_tcp|fe_web|fe_tcp)$/.test(backend ?? name),
        )
        .map(({ type, name, backend_name: backend, stats: s }) => {
          const {
            status,
            scur,
            qcur,
            act,
            bck,
            mode,
            weight,
            wretr,
            tracked,
            check_health: health,
          } = s
          return {
            type,
            name,
            backend,
            status,
            mode,
            tracked,
            ...(type === 'server' ? { scur, qcur, act, bck, weight, wretr, health } : {}),
          }
        }),
    ),
  }
}

describe.concurrent.each(recordings())('$name', ({ tree, version, topic, exchanges }) => {
  test('the fake answers as the real one did', { timeout: 60_000 }, async () => {
    await using fake = await startFake({
      config: CONFIG,
      version,
      username: 'admin',
      password: 'adminpwd',
      maxTransactions: 3,
      // a reload makes a step where the recording shows it, however long that takes here
      reloadDelay: Infinity,
      startup: Infinity,
      configVersion: FIRST_VERSION[topic] ?? 1,
    })
    const replay = new Replay(fake, version)
    await replay.prime(topic)
    let signalled = false
    for (const exchange of exchanges) {
      const { note, request: asked, response } = exchange
      const what = `${note ?? ''} ${asked.method} ${asked.path}`
      await replay.world(exchange)
      if (signalled && asked.method !== 'GET') {
        await fake.advanceReload()
        signalled = false
      }
      const wanted = essence(exchange, response.body)
      let reply = await replay.ask(exchange)
      if (asked.method === 'GET') {
        // time passes in the recording too: checks pass, reloads end
        await until(
          what,
          async () => {
            if (JSON.stringify(essence(exchange, reply.body)) === JSON.stringify(wanted))
              return true
            await fake.advanceReload()
            reply = await replay.ask(exchange)
            return undefined
          },
          20_000,
        ).catch(() => undefined)
      }
      expect(reply.status, what).toBe(response.status)
      expect(essence(exchange, reply.body), what).toEqual(wanted)
      for (const name of ['Configuration-Version', 'Www-Authenticate']) {
        expect(reply.headers[name.toLowerCase()], `${what}: ${name}`).toBe(response.headers[name])
      }
      // in 2.x a reload has "succeeded" before there is a new process
      if (tree === 'v2' && note === 'reload status: succeeded') signalled = true
      const hasReload = 'reload-id' in reply.headers
      expect(hasReload, `${what}: Reload-Id`).toBe('Reload-Id' in response.headers)
    }
  })
})
