/** A Kubernetes control plane of one's own on loopback, and the few calls that the recordings need. */
import { generateKeyPairSync } from 'node:crypto'
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../ports.ts'

const TOKEN = 'recording'

/** A Kubernetes object, as far as the recordings look at any. */
export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly resourceVersion?: string
    readonly [key: string]: unknown
  }
  readonly [key: string]: unknown
}

/** `MERGE`: a patch that merges lists by their key, as the kubelet sends for the status of its Node. */
export type Method = 'GET' | 'POST' | 'PATCH' | 'MERGE' | 'DELETE'

const CONTENT_TYPES: Partial<Record<Method, string>> = {
  PATCH: 'application/merge-patch+json',
  MERGE: 'application/strategic-merge-patch+json',
}

/** What a watch says. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubeObject
}

export interface ControlPlane extends AsyncDisposable {
  readonly version: string
  /** On 127.0.0.1. */
  readonly port: number
  /** A kubeconfig for it; `port` for one by way of a relay, `token` for another account than the administrator's. */
  kubeconfig(port?: number, token?: string): string
  /** Kills it, etcd and controllers with it: every connection is reset. */
  kill(): Promise<void>
  /** Starts it again at the same port, with what it had stored. */
  restart(): Promise<void>
  /** Every request that an account made and that was answered, as `verb group/resource`; `refused` before what it had no right to. */
  requestsOf(user: string): ReadonlySet<string>
  /** How often an account made such a request. */
  countOf(user: string, request: string): number
  /** A call that must succeed; the reply's JSON. */
  call(method: Method, path: string, body?: unknown): Promise<KubeObject>
  /** Everything that happens to the objects of this path from now on. */
  watch(path: string, onEvent: (event: WatchEvent) => void): Promise<AsyncDisposable>
}

/** Starts the program that `npm run engines -- kube` builds. */
export async function startControlPlane(program: string): Promise<ControlPlane> {
  const directory = mkdtempSync(join(tmpdir(), 'drainable-kube-'))
  const [api, etcdClient, etcdPeer] = [await freePort(), await freePort(), await freePort()]
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  })
  const file = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const audit = join(directory, 'audit.log')
  const etcd = `http://127.0.0.1:${etcdClient}`
  const args = [
    `--etcd-servers=${etcd}`,
    `--secure-port=${api}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--cert-dir=${join(directory, 'certs')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('public.pem', publicKey)}`,
    `--service-account-signing-key-file=${file('private.pem', privateKey)}`,
    '--service-cluster-ip-range=10.96.0.0/24',
    '--authorization-mode=RBAC',
    `--token-auth-file=${file('tokens.csv', `${TOKEN},recorder,recorder,"system:masters"\n`)}`,
    '--disable-admission-plugins=ServiceAccount',
    '--endpoint-reconciler-type=none',
    `--audit-policy-file=${file('audit.json', JSON.stringify(AUDIT))}`,
    `--audit-log-path=${audit}`,
    // Of 1.37: node conditions of KEP-5683, eviction requests of KEP-4563. Both are alpha.
    '--feature-gates=NodeLifecycleConditions=true,EvictionRequestAPI=true',
    '--runtime-config=lifecycle.k8s.io/v1alpha1=true',
  ]
  let child: ChildProcess
  let said = ''
  let ended: Promise<void>
  const start = (): void => {
    child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        TEST_ETCD_DIR: join(directory, 'etcd'),
        TEST_ETCD_CLIENT_URL: etcd,
        TEST_ETCD_PEER_URL: `http://127.0.0.1:${etcdPeer}`,
        TEST_ENDPOINTSLICE_CONTROLLER: `https://127.0.0.1:${api}`,
        TEST_TOKEN: TOKEN,
      },
    })
    const { stderr } = child
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-2_000)
    })
    ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  }
  start()
  const checkAlive = (): void => {
    if (child.exitCode === null) return
    throw new Error(`the control plane ended with ${child.exitCode}: ${said}`)
  }
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  const stop = async (): Promise<void> => {
    await kill()
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    const certificate = join(directory, 'certs', 'apiserver.crt')
    await until(
      () => {
        checkAlive()
        // Seen empty between its making and its writing: no certificate would then ever be trusted.
        return (
          existsSync(certificate) &&
          /END CERTIFICATE-----\s*$/.test(readFileSync(certificate, 'utf8'))
        )
      },
      30_000,
      'the certificate of the API server',
    )
    const client = new Client(api, readFileSync(certificate, 'utf8'))
    const ready = (): Promise<void> =>
      until(
        () => {
          checkAlive()
          return client.isReady()
        },
        60_000,
        'the API server answers /readyz',
      )
    await ready()
    const { gitVersion } = await client.call('GET', '/version')
    return {
      version: String(gitVersion),
      port: api,
      kubeconfig: (port = api, token = TOKEN) => kubeconfig(port, readFileSync(certificate), token),
      kill,
      restart: async () => {
        start()
        await ready()
      },
      requestsOf: (user) => new Set(requestsOf(user, readFileSync(audit, 'utf8'))),
      countOf: (user, request) =>
        requestsOf(user, readFileSync(audit, 'utf8')).filter((one) => one === request).length,
      call: (method, path, body) => client.call(method, path, body),
      watch: (path, onEvent) => client.watch(path, onEvent),
      [Symbol.asyncDispose]: async () => {
        client.close()
        await stop()
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** What accounts ask for, and no more of it: the requests of the cluster's own parts are not noted. */
const AUDIT = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'], // of a watch the beginning says all
  rules: [{ level: 'Metadata', userGroups: ['system:serviceaccounts'] }, { level: 'None' }],
}

interface AuditEvent {
  readonly verb: string
  readonly user: { readonly username: string }
  readonly objectRef?: Readonly<
    Partial<Record<'apiGroup' | 'resource' | 'subresource' | 'name', string>>
  >
  readonly responseStatus?: { readonly code?: number }
}

function requestsOf(user: string, log: string): readonly string[] {
  const events = log
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as AuditEvent]))
  return events.flatMap(({ verb, user: { username }, objectRef = {}, responseStatus }) => {
    if (username !== user || responseStatus?.code === undefined) return []
    const { apiGroup = '', resource = '', subresource } = objectRef
    const full = subresource === undefined ? resource : `${resource}/${subresource}`
    return [`${responseStatus.code === 403 ? 'refused ' : ''}${verb} ${apiGroup}/${full}`]
  })
}

/** JSON is YAML. */
function kubeconfig(port: number, ca: Buffer, token: string): string {
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    'certificate-authority-data': ca.toString('base64'),
  }
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  })
}

class Client {
  readonly #port: number
  readonly #agent: Agent

  constructor(port: number, ca: string) {
    this.#port = port
    this.#agent = new Agent({ ca, keepAlive: true })
  }

  async isReady(): Promise<boolean> {
    try {
      const reply = await this.#send('GET', '/readyz')
      return (await textOf(reply)) === 'ok'
    } catch {
      return false
    }
  }

  async call(method: Method, path: string, body?: unknown): Promise<KubeObject> {
    const reply = await this.#send(method, path, body)
    const text = await textOf(reply)
    if ((reply.statusCode ?? 0) >= 300) throw new Error(`${method} ${path}: ${text}`)
    return JSON.parse(text) as KubeObject
  }

  async watch(path: string, onEvent: (event: WatchEvent) => void): Promise<AsyncDisposable> {
    const { metadata } = await this.call('GET', path)
    const from = metadata.resourceVersion ?? ''
    const reply = await this.#send('GET', `${path}?watch=1&resourceVersion=${from}`)
    const lines = createInterface({ input: reply })
    lines.on('line', (line) => onEvent(JSON.parse(line) as WatchEvent))
    // Of a server that was killed: readline hands the stream's error on.
    for (const part of [reply, lines]) part.on('error', () => lines.close())
    return {
      [Symbol.asyncDispose]: () => {
        lines.close()
        reply.destroy()
        return Promise.resolve()
      },
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #send(method: Method, path: string, body?: unknown): Promise<IncomingMessage> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        'content-type': CONTENT_TYPES[method] ?? 'application/json',
        'content-length': Buffer.byteLength(text ?? ''), // Node says none of itself for a DELETE
      }
      const options = {
        host: '127.0.0.1',
        port: this.#port,
        agent: this.#agent,
        method: method === 'MERGE' ? 'PATCH' : method,
        path,
        headers,
      }
      const call = request(options, resolve)
      call.once('error', reject)
      call.end(text)
    })
  }
}

async function textOf(reply: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of reply.setEncoding('utf8')) text += String(chunk)
  return text
}

/** Waits for a condition, in small steps; throws when it does not come true in time, and says what it waited for. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  ms: number,
  what: string,
): Promise<void> {
  const deadline = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms} ms`)
    await pause(20)
  }
}
