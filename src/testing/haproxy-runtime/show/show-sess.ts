import type { Backend } from '../process/backend.js'
import { HIDDEN, type Session } from '../process/server.js'
import type { Worker } from '../process/worker.js'

/** The rest of a line; `state` is that of the server's side: 2 queued, 3 before a retry, 8 connected. */
function tail(state = 8): string {
  return (
    'calls=1 rate=0 cpu=0 lat=0 rq[f=848000h,i=0,an=00h,ax=] ' +
    `rp[f=80048000h,i=0,an=00h,ax=] scf=[8,0h,fd=16,rex=60s,wex=] scb=[${state},1h,fd=17,rex=60s,wex=] ` +
    'exp=60s rc=0 c_exp='
  )
}

/** What a filter lets through. */
interface Filter {
  readonly pool: string
  /** Undefined: every stream of the backend. */
  readonly member: string | undefined
}

/**
 * `show sess`: one line a stream. `server b/s` and `backend b` filter on 3.2 only, and refuse what is not there; the
 * others list everything.
 */
export function showSess(worker: Worker, args: readonly string[]): string {
  const only = readFilter(worker, args)
  if (typeof only === 'string') return only
  const lines = worker.backends
    .filter(({ name }) => only === undefined || only.pool === name)
    .flatMap((backend) => listStreams(worker, backend, only?.member))
  // The command line's own stream is listed too.
  const own = `0x7f0000000000: proto=unix_stream src=unix:1 fe=GLOBAL be=<NONE> srv=<none> ts=00 epoch=0 age=0s ${tail()}\n`
  return lines.join('') + (only === undefined ? own : '')
}

/** The filter; a text if it names what is not there. */
function readFilter(
  worker: Worker,
  [by, name = '']: readonly string[],
): Filter | string | undefined {
  if (worker.config.version !== '3.2') return undefined
  const [pool = '', member] = name.split('/')
  const backend = worker.backend(pool)
  if (by === 'backend') return backend ? { pool, member: undefined } : 'No such backend.\n'
  if (by !== 'server') return undefined
  const isThere = backend?.servers.some((server) => server.name === member)
  return isThere === true ? { pool, member } : 'No such server.\n'
}

function listStreams(worker: Worker, backend: Backend, member: string | undefined): string[] {
  const front = worker.config.frontends.find(({ pool }) => pool === backend.name)
  const line = (stream: object, srv: string, state: number, age = '0s'): string => {
    const id = worker.sessionId(stream)
    return `${id}: proto=tcpv4 src=127.0.0.1:1 fe=${front?.name ?? backend.name} be=${backend.name} srv=${srv} ts=00 epoch=0 age=${age} ${tail(state)}\n`
  }
  const servers = backend.servers.filter(({ name }) => member === undefined || member === name)
  const bound = servers.flatMap(({ name, sessions, hidden, queue }) => [
    ...[...sessions].map((session) => line(session, name, 8, ageOf(session))),
    ...[...hidden].map(([session, why]) => line(session, name, HIDDEN[why])),
    ...queue.map((waiting) => line(waiting, name, HIDDEN.slot)),
  ])
  if (member !== undefined) return bound
  return [...bound, ...backend.waiting.map((waiting) => line(waiting, '<none>', HIDDEN.slot))]
}

/** As HAProxy cuts it: the two largest units. */
function ageOf({ since = Date.now() }: Session): string {
  const seconds = Math.floor((Date.now() - since) / 1_000)
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ]
  const said = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count}${unit}`)
  return said.slice(0, 2).join('') || '0s'
}

/** `show sess all`: each stream over many lines, of which the fake has those that tell what it carries. */
export function showSessAll(worker: Worker): string {
  const texts: string[] = []
  for (const backend of worker.backends) {
    const front = worker.config.frontends.find(({ pool }) => pool === backend.name)
    const name = front?.name ?? backend.name
    const isTcp = front?.mode === 'tcp'
    const mode = isTcp ? 'tcp' : 'http'
    const mux = isTcp ? 'PASS' : 'H1'
    for (const server of backend.servers) {
      for (const session of server.sessions) {
        const id = worker.sessionId(session)
        const stage = session.tunnel
          ? 'status=101 req.st=MSG_TUNNEL rsp.st=MSG_TUNNEL'
          : 'status=-1 req.st=MSG_DONE rsp.st=MSG_RPBEFORE'
        texts.push(
          `${id}: [01/Jan/2026:00:00:00.000000] id=1 proto=tcpv4 source=127.0.0.1:1`,
          `  frontend=${name} (id=2 mode=${mode}), listener=? (id=1) addr=127.0.0.1:1`,
          `  backend=${backend.name} (id=3 mode=${mode}) addr=127.0.0.1:1`,
          `  server=${server.name} (id=1) addr=127.0.0.1:1`,
          ...(isTcp ? [] : [`  txn=${id} flags=0x3060 meth=1 ${stage} req.f=0x4c rsp.f=0x00`]),
          `  scf=${id} flags=0x00000482 ioto=1m state=EST endp=CONN,${id},0x10404001 sub=0`,
          `      co0=${id} ctrl=tcpv4 xprt=RAW mux=${mux} data=STRM target=LISTENER:0x7f0000000001`,
          `  scb=${id} flags=0x00001411 ioto=1m state=EST endp=CONN,${id},0x50400001 sub=1`,
        )
      }
    }
  }
  return texts.map((line) => `${line}\n`).join('')
}
