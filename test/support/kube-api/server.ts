/**
 * A Kubernetes API on loopback that refuses what the real one refuses (kube-apiserver 1.37.0): versions that were
 * forgotten, writes that stand on an old version, names and fields of a wrong form, calls without a right or a token.
 * It lists page by page, watches from a version on, and can hang, break off and lie as a server in trouble does.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcp, type AddressInfo, type Socket } from 'node:net'
import type { KubeConfigLike } from 'drainable/kubernetes'
import { check, matches } from './rules.js'

export interface Stored {
  metadata: { name: string; namespace?: string; resourceVersion: string; [field: string]: unknown }
  [field: string]: unknown
}

interface Event {
  readonly version: number
  readonly path: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: Stored
}

/** One request that was taken. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
}

/**
 * What is done with a request instead of an answer; `undefined`: it is answered. `unsure`: it is done, and the answer is 504, as
 * where etcd was too late.
 */
type Trouble = (asked: Asked) => 'hang' | 'reset' | 'late' | 'lost' | 'unsure' | Refusal | undefined

interface Refusal {
  readonly status: number
  readonly text: string
}

interface Watcher {
  readonly path: string
  readonly query: URLSearchParams
  readonly response: ServerResponse
}

export class FakeKube implements AsyncDisposable {
  readonly asked: Asked[] = []
  /** Decides about each request before anything else does. */
  trouble: Trouble = () => undefined
  #version = 100
  #forgotten = 0
  readonly #objects = new Map<string, Stored>()
  readonly #events: Event[] = []
  readonly #watchers = new Set<Watcher>()
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((request, response) => void this.#take(request, response))
  readonly #late: (() => void)[] = []
  #token = 'secret-token'

  static async start(): Promise<FakeKube> {
    const kube = new FakeKube()
    kube.#server.on('connection', (socket) => {
      kube.#sockets.add(socket)
      socket.on('close', () => kube.#sockets.delete(socket))
    })
    await kube.#listen(0)
    return kube
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** A kubeconfig for it. */
  get config(): KubeConfigLike {
    const server = `http://127.0.0.1:${this.port}`
    return configFor(server, () => this.#token)
  }

  /** Watches that are open now. */
  get watches(): number {
    return this.#watchers.size
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Lists and watches of a resource that were asked for. */
  calls(resource: string, kind: 'list' | 'watch' | 'write'): readonly Asked[] {
    return this.asked.filter(({ method, path, query }) => {
      if (!path.endsWith(`/${resource}`) && kind !== 'write') return false
      if (kind === 'write') return method !== 'GET' && path.includes(`/${resource}`)
      return method === 'GET' && query.has('watch') === (kind === 'watch')
    })
  }

  /** Puts an object as any other client would. */
  put(collection: string, object: { readonly metadata: { readonly name: string } }): Stored {
    return this.#store(collection, object as Stored)
  }

  remove(collection: string, name: string): void {
    this.#delete(`${collection}/${name}`)
  }

  get(collection: string, name: string): Stored | undefined {
    return this.#objects.get(`${collection}/${name}`)
  }

  /** The names of all objects in a collection. */
  names(collection: string): readonly string[] {
    return [...this.#objects].flatMap(([key, { metadata }]) =>
      key === `${collection}/${metadata.name}` ? [metadata.name] : [],
    )
  }

  /** Every version up to now is forgotten: watches from one of them are told `410 Gone`. */
  forget(): void {
    this.#forgotten = this.#version
  }

  /** Ends every watch in order, as when its time is over; with a bookmark of the newest version first. */
  endWatches({ bookmark = true } = {}): void {
    for (const watcher of this.#watchers) this.#end(watcher, bookmark)
  }

  #end(watcher: Watcher, bookmark = true): void {
    // One that was forgotten says nothing, and does not end.
    if (!this.#watchers.delete(watcher)) return
    const metadata = { resourceVersion: String(this.#version) }
    if (bookmark) send(watcher.response, { type: 'BOOKMARK', object: { metadata } })
    watcher.response.end()
  }

  /** Tells every watch something else than an event. */
  tellWatches(line: string): void {
    for (const { response } of this.#watchers) response.write(`${line}\n`)
  }

  /** No watch is told anything any more, and none is ended: the network forgot them. */
  forgetWatches(): void {
    this.#watchers.clear()
  }

  /** Every connection is reset, and none is taken until {@link up}. */
  async down(): Promise<() => Promise<void>> {
    const { port } = this
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.resetAndDestroy()
    this.#watchers.clear()
    await closed
    return () => this.#listen(port)
  }

  /** Answers what was kept `late`: it was carried out when it came, or is carried out now. */
  flush(): void {
    for (const answer of this.#late.splice(0)) answer()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  async #listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://kube')
    const { method = 'GET' } = request
    const body = await textOf(request).catch(() => '')
    const asked = { method, path: decodeURIComponent(url.pathname), query: url.searchParams }
    this.asked.push(asked)
    const trouble = this.trouble(asked)
    if (trouble === 'hang') return
    if (trouble === 'reset') request.socket.resetAndDestroy()
    else if (trouble === 'late') this.#late.push(() => this.#answer(asked, body, request, response))
    else if (trouble === 'lost') {
      this.#answer(asked, body, request, undefined)
      request.socket.resetAndDestroy()
    } else if (trouble === 'unsure') {
      this.#answer(asked, body, request, undefined)
      response.writeHead(504).end('{"message":"etcdserver: request timed out"}')
    } else if (trouble !== undefined) {
      response.writeHead(trouble.status, { 'x-secret-header': 'never in a message' })
      response.end(trouble.text)
    } else this.#answer(asked, body, request, response)
  }

  #answer(
    asked: Asked,
    body: string,
    request: IncomingMessage,
    response: ServerResponse | undefined,
  ): void {
    const reply = (status: number, object: unknown): void => {
      response?.writeHead(status, { 'content-type': 'application/json', 'audit-id': 'a1b2' })
      response?.end(JSON.stringify(object))
    }
    if (request.headers.authorization !== `Bearer ${this.#token}`)
      reply(401, statusOf(401, 'Unauthorized'))
    else if (asked.query.has('watch')) this.#watch(asked, response)
    else {
      const { accept = '' } = request.headers
      const [status, object] = this.#carryOut(asked, body, accept)
      reply(status, object)
    }
  }

  #carryOut(asked: Asked, body: string, accept: string): readonly [number, unknown] {
    const { method, path } = asked
    const known = this.#objects.get(path)
    if (method === 'GET') return known === undefined ? this.#list(asked, accept) : [200, known]
    const given = (body === '' ? {} : JSON.parse(body)) as Partial<Stored>
    if (method === 'DELETE') {
      if (known === undefined) return [404, statusOf(404, `"${path}" not found`)]
      const { preconditions } = given as { preconditions?: { resourceVersion?: string } }
      const wanted = preconditions?.resourceVersion
      if (wanted !== undefined && wanted !== known.metadata.resourceVersion)
        return [409, statusOf(409, 'Precondition failed: ResourceVersion')]
      this.#delete(path)
      return [200, statusOf(200, '')]
    }
    const wrong = check(path, given)
    if (wrong !== undefined) return [wrong.status, statusOf(wrong.status, wrong.text)]
    const { metadata } = given as Stored
    if (method === 'POST') {
      if (Object.hasOwn(metadata, 'resourceVersion'))
        return [400, statusOf(400, 'resourceVersion should not be set on objects to be created')]
      if (this.#objects.has(`${path}/${metadata.name}`))
        return [409, statusOf(409, `"${metadata.name}" already exists`)]
      return [201, this.#store(path, given as Stored)]
    }
    if (known === undefined) return [404, statusOf(404, `"${metadata.name}" not found`)]
    if (metadata.resourceVersion !== known.metadata.resourceVersion) {
      const words =
        'the object has been modified; please apply your changes to the latest version and try again'
      return [409, statusOf(409, words)]
    }
    return [200, this.#store(path.slice(0, path.lastIndexOf('/')), given as Stored)]
  }

  #list({ path, query }: Asked, accept: string): readonly [number, unknown] {
    if (/\/(leases|configmaps)\/[^/]+$/.test(path))
      return [404, statusOf(404, `"${path.split('/').at(-1)}" not found`)]
    const all = [...this.#objects]
      .filter(([key]) => key.slice(0, key.lastIndexOf('/')) === path)
      .map(([, object]) => object)
      .filter((object) => matches(object, query))
    const [version = String(this.#version), offset = '0'] = query.get('continue')?.split(':') ?? []
    if (Number(version) <= this.#forgotten && offset !== '0')
      return [410, statusOf(410, 'The provided continue parameter is too old')]
    const limit = Number(query.get('limit') ?? all.length)
    const until = Number(offset) + limit
    const next = until < all.length ? { continue: `${version}:${until}` } : {}
    const items = all.slice(Number(offset), until)
    const partial = accept.includes('as=PartialObjectMetadataList')
    return [
      200,
      {
        kind: partial ? 'PartialObjectMetadataList' : 'List',
        metadata: { resourceVersion: version, ...next },
        items: partial ? partly(items) : items,
      },
    ]
  }

  #watch({ path, query }: Asked, response: ServerResponse | undefined): void {
    if (response === undefined) return
    const from = Number(query.get('resourceVersion'))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (from < this.#forgotten) {
      send(response, {
        type: 'ERROR',
        object: statusOf(410, `too old resource version: ${from} (${this.#forgotten})`),
      })
      response.end()
      return
    }
    const watcher = { path, query, response }
    for (const event of this.#events) if (event.version > from) tell(watcher, event)
    this.#watchers.add(watcher)
    const seconds = Number(query.get('timeoutSeconds') ?? 1_800)
    const over = setTimeout(() => this.#end(watcher), seconds * 1_000)
    response.on('close', () => {
      clearTimeout(over)
      this.#watchers.delete(watcher)
    })
  }

  #store(collection: string, given: Stored): Stored {
    const key = `${collection}/${given.metadata.name}`
    const known = this.#objects.get(key)
    const namespace = /\/namespaces\/([^/]+)\//.exec(collection)?.[1]
    this.#version += 1
    const metadata = {
      ...given.metadata,
      ...(namespace === undefined ? {} : { namespace }),
      uid: known?.metadata['uid'] ?? `uid-${this.#version}`,
      creationTimestamp: known?.metadata['creationTimestamp'] ?? secondsOf(new Date()),
      resourceVersion: String(this.#version),
      managedFields: [{ manager: 'test' }],
    }
    const object = { ...given, metadata }
    this.#objects.set(key, object)
    this.#record(collection, known === undefined ? 'ADDED' : 'MODIFIED', object)
    return object
  }

  #delete(key: string): void {
    const object = this.#objects.get(key)
    if (object === undefined) return
    this.#objects.delete(key)
    this.#version += 1
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) }
    this.#record(key.slice(0, key.lastIndexOf('/')), 'DELETED', { ...object, metadata })
  }

  #record(path: string, type: Event['type'], object: Stored): void {
    const event = { version: this.#version, path, type, object }
    this.#events.push(event)
    for (const watcher of this.#watchers) tell(watcher, event)
  }
}

/** A kubeconfig that adds a token. */
export function configFor(server: string, token: () => string): KubeConfigLike {
  return {
    getCurrentCluster: () => ({ server }),
    applyToHTTPSOptions: (options) => {
      Object.assign(options.headers ?? {}, { authorization: `Bearer ${token()}` })
      return Promise.resolve()
    },
  }
}

/** An address where connections are taken and nothing is ever said: a frozen API server. */
export async function startFrozen(): Promise<AsyncDisposable & { readonly url: string }> {
  const sockets = new Set<Socket>()
  const server = createTcp((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `https://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

function tell({ path, query, response }: Watcher, event: Event): void {
  if (event.path === path && matches(event.object, query))
    send(response, { type: event.type, object: event.object })
}

function send(response: ServerResponse, event: unknown): void {
  response.write(`${JSON.stringify(event)}\n`)
}

/** Metadata alone; nothing is `null` there, and no empty list (seen on 1.37.0). */
function partly(items: readonly Stored[]): readonly object[] | null {
  return items.length === 0 ? null : items.map(({ metadata }) => ({ metadata }))
}

/** As the API tells a time: in whole seconds. */
export function secondsOf(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}

function statusOf(code: number, message: string): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code, metadata: {} }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += String(part)
  return text
}
