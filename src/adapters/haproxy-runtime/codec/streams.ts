import { formatSocket } from '../../../provider/address.js'
import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'

/**
 * Decoder of `show sess all`: finds the client connections that carry a tunnel.
 *
 * One stream begins with its pointer at the start of a line and goes on in indented lines. Of these,
 * seen alike on 2.6, 3.0 and 3.2:
 *
 * - `txn=` is there for HTTP alone; a tunnel (101, or CONNECT) has `req.st=MSG_TUNNEL rsp.st=MSG_TUNNEL`
 * - `scb=` is the server's side: `state=EST` once it is connected
 * - `server=` has the address to which it is connected, whatever address that server has now
 * - `co0=` is the client's connection: `mux=PASS` for TCP, `mux=H1`, or one that carries several streams
 */

/**
 * Counts the client connections with a tunnel over HTTP/1 or TCP: they can't bring another request. A stream that is not
 * understood does not count as one, nor does a tunnel over HTTP/2 (a WebSocket by RFC 8441): an old process sends GOAWAY
 * on the connection, but still serves every further request as long as the tunnel lasts (measured on 2.6, 3.0, 3.2 and
 * 3.4).
 */
export function countTunnels(reply: string): number {
  const streams = reply.split(/^(?=0x[0-9a-f]+: )/m)
  return new Set(streams.flatMap((stream) => tunnelOf(stream) ?? [])).size
}

/**
 * How long ago the oldest stream of each server began, in milliseconds, by the server's key; from the lines
 * of `show sess`. HAProxy cuts the age to its two largest units (`1m17s`, `2h4m`). A stream is one request
 * of HTTP, or one connection of TCP; on 2.6 the first also lasts while its connection waits for it (6 s
 * where the request was 2 s old; 3.2: 2 s).
 */
export function oldestStreams(reply: string): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>()
  for (const line of reply.split('\n')) {
    const [, pool, member, text] = STREAM_LINE.exec(line) ?? []
    if (pool === undefined || member === undefined) continue
    const age = parseAge(text ?? '')
    const key = refKey({ pool, member })
    if (age !== undefined) oldest.set(key, Math.max(age, oldest.get(key) ?? 0))
  }
  return oldest
}

const STREAM_LINE = /^0x[0-9a-f]+: .*? be=(\S+) srv=(\S+) .*?\bage=(\w+) /
const AGE = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/

function parseAge(text: string): number | undefined {
  const match = text === '' ? null : AGE.exec(text)
  if (match === null) return undefined
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = match
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0))
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000
}

/** Whether it is a reply to `show sess`: a list of streams, one line each, or none. */
export function isStreamList(reply: string): boolean {
  return reply.split('\n').every((line) => line === '' || line.startsWith('0x'))
}

/**
 * How many streams have each server although its row was at zero right before, by the server's key; from the lines of
 * `show sess`.
 *
 * `scb=[2,` is the state of the server's side, alike on 2.6, 3.0, 3.2 and 3.4: 2 in the queue, 3 before a retry, 5
 * connecting, 8 connected, more once its connection is over.
 */
export function countUncounted(reply: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { pool, member, state } of statesOf(reply)) {
    const key = refKey({ pool, member })
    if (member !== NO_SERVER && state <= CONNECTED) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/**
 * The pointers of the streams that have left the queue of a backend with a slot of a server that the list does not name
 * (`<none>`): they have the state 2 until they run, and were woken for that. `ts=` is not 00 (2004 on 2.6, 3.0, 3.2 and
 * 3.4), as it is where one only waits.
 */
export function slotsOf(reply: string, backend: string): ReadonlySet<string> {
  const slots = statesOf(reply).filter(
    ({ pool, member, state, isWoken }) =>
      pool === backend && member === NO_SERVER && state === QUEUED && isWoken,
  )
  return new Set(slots.map(({ pointer }) => pointer))
}

/** The pointers of the streams of a server; from the lines of `show sess`. */
export function pointersOf(reply: string, { pool, member }: MemberRef): string[] {
  const own = statesOf(reply).filter((one) => one.pool === pool && one.member === member)
  return own.map(({ pointer }) => pointer)
}

function statesOf(
  reply: string,
): (Stream & { readonly isWoken: boolean; readonly state: number })[] {
  return reply.split('\n').flatMap((line) => {
    const [, pointer, pool, member, task = '', state] = STREAM_STATE.exec(line) ?? []
    if (pointer === undefined || pool === undefined || member === undefined) return []
    return [
      { pointer, pool, member, isWoken: Number.parseInt(task, 16) !== 0, state: Number(state) },
    ]
  })
}

/** In the place of a server that is not known yet. */
const NO_SERVER = '<none>'
const STREAM_STATE = /^(0x[0-9a-f]+): .*? be=(\S+) srv=(\S+) ts=([0-9a-f]+) .*? scb=\[(\d+),/
const QUEUED = 2
const CONNECTED = 8

/** One stream, with the server that it belongs to. */
export interface Stream {
  readonly pointer: string
  readonly pool: string
  readonly member: string
}

/**
 * The streams that are connected to that address, by pointer, with the server that they belong to.
 *
 * @param pool - the backend; undefined: of any
 * @param to - a port of 0 stands for every port: HAProxy then takes that of the client's connection
 */
export function streamsTo(
  reply: string,
  pool: string | undefined,
  to: { readonly address: string; readonly port: number },
): Stream[] {
  const wanted = formatSocket(to.address, to.port)
  return reply.split(/^(?=0x[0-9a-f]+: )/m).flatMap((stream) => {
    const [, pointer = '', backend = ''] = STREAM_BACKEND.exec(stream) ?? []
    const [, member = '', address = '', port] = STREAM_SERVER.exec(stream) ?? []
    if (address === '' || (pool !== undefined && backend !== pool)) return []
    const is = formatSocket(address, to.port === 0 ? 0 : Number(port))
    return is === wanted ? [{ pointer, pool: backend, member }] : []
  })
}

const STREAM_BACKEND = /^(0x[0-9a-f]+): [^]*?^ {2}backend=(\S+) /m
const STREAM_SERVER = /^ {2}server=(\S+) \(id=-?\d+\) addr=(\S+):(\d+)$/m

/** The client's connection, by its pointer, if this stream is an established tunnel and the only one on it. */
function tunnelOf(stream: string): string | undefined {
  const client = /^ +co0=(0x[0-9a-f]+) .* mux=(H1|PASS) .*target=LISTENER:/m.exec(stream)
  if (client === null || !/^ +scb=.* state=EST /m.test(stream)) return undefined
  const [, connection, mux] = client
  const exchange = /^ +txn=0x.*$/m.exec(stream)?.[0]
  if (exchange !== undefined) {
    const tunnel = / req\.st=MSG_TUNNEL rsp\.st=MSG_TUNNEL /.test(`${exchange} `)
    return tunnel && mux === 'H1' ? connection : undefined
  }
  const tcp = /^ +frontend=\S+ \(id=-?\d+ mode=tcp\)/m.test(stream)
  return tcp && mux === 'PASS' && !stream.includes('frontend=GLOBAL ') ? connection : undefined
}
