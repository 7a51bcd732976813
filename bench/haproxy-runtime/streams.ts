/**
 * Requests that one late thread of HAProxy holds: how long they are in no count, and whether `show sess` has them. Then
 * what that list costs, by the number of streams, and for how long another request waits meanwhile. On each HAProxy of
 * the engines folder.
 *
 * `npm run bench haproxy-runtime/streams`
 */
import { once } from 'node:events'
import { Agent } from 'node:http'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as pass } from 'node:timers/promises'
import { engines } from '../../test/support/engines.js'
import { Haproxy, until } from '../../test/support/haproxy.js'
import { LateThread } from '../../test/support/haproxy-late.js'
import { Backend, request } from '../../test/support/haproxy-traffic.js'
import { quantile } from './support/figures.js'

type Engine = ReturnType<typeof engines>[number]

const ROUNDS = 5
/** Pieces of 150 ms that the late thread has before it. */
const PIECES = 4
/** How many streams are listed: two file descriptors each, one here and one in HAProxy. */
const STREAMS = [100, 1_000, 9_000]
const LISTS = 9
const AT_ONCE = 500

const ms = (value: number): string => `${value.toFixed(1)} ms`

/** What was seen of one request that the late thread held. */
interface Seen {
  /** How long the counts showed nothing of it before the list was asked for; undefined: it was counted at once. */
  readonly state: string | undefined
  /** How long the list took. */
  readonly listed: number
  /** How long after the first zero it came to the server. */
  readonly came: number
}

const isZero = async (it: LateThread): Promise<boolean> =>
  (await it.stat('web', 's1', 'scur')) === '0' && (await it.stat('web', 's1', 'qcur')) === '0'

/** From a zero in the counts on: the list, and the request. */
async function seen(it: LateThread, s1: Backend, total: number): Promise<Seen> {
  const from = performance.now()
  const list = await it.cli('show sess')
  const listed = performance.now() - from
  await until(() => s1.total === total, 'the request comes')
  const state = /fe=f_second be=web srv=s1 .*? scb=\[(\d+),/.exec(list)?.[1]
  return { state, listed, came: s1.lastArrivalAt - from }
}

async function slot(engine: Engine): Promise<Seen> {
  await using it = await LateThread.start({ engine, s1: 'maxconn 1' })
  const s1 = await it.startS1()
  const running = request(it.haproxy.port('first'), '/hold', { cookie: 's1' })
  await until(() => s1.active === 1, 'in flight')
  const queued = request(it.haproxy.port('second'), '/', { cookie: 's1' })
  await until(async () => (await it.stat('web', 's1', 'qcur')) === '1', 'queued')
  const pieces = await it.pieces(PIECES)
  await pieces.begin()
  s1.release()
  await until(() => isZero(it), 'no count shows it')
  const found = await seen(it, s1, 2)
  await Promise.all([running, queued, pieces.over])
  return found
}

async function retry(engine: Engine): Promise<Seen> {
  await using it = await LateThread.start({ engine })
  const pieces = await it.pieces(2 * PIECES)
  const answer = request(it.haproxy.port('second'), '/', { cookie: 's1' })
  await until(async () => (await it.stat('web', 's1', 'wretr')) !== '0', 'refused once')
  const s1 = await it.startS1()
  await pass(800)
  await pieces.begin()
  await pass(350)
  const found = await seen(it, s1, 1)
  await Promise.all([answer, pieces.over])
  return found
}

async function late(engine: Engine): Promise<void> {
  for (const [what, play] of [
    ['a request that got its slot', slot],
    ['a retry after 1.1 s', retry],
  ] as const) {
    const all: Seen[] = []
    for (let round = 0; round < ROUNDS; round += 1) all.push(await play(engine))
    const listed = all.filter(({ state }) => state !== undefined)
    const states = [...new Set(listed.map(({ state }) => state))].join(', ')
    const longest = Math.max(...all.map(({ came }) => came))
    console.log(
      `HAProxy ${engine.version}, ${what}: in no count for up to ${ms(longest)}; ${listed.length} of ${ROUNDS} listed with their server (state ${states}); the list took up to ${ms(Math.max(...all.map((one) => one.listed)))}`,
    )
  }
}

async function cost(engine: Engine): Promise<void> {
  await using haproxy = await Haproxy.start({
    engine,
    global: '  maxconn 9500',
    config: (port) => `
frontend f_many
  bind 127.0.0.1:${port('many')}
  mode tcp
  tcp-request inspect-delay 120s
  tcp-request content accept if { req.len gt 1000 }
  timeout client 120s
  default_backend many
backend many
  mode tcp
  server s1 127.0.0.1:1
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  server s1 127.0.0.1:${port('s1')}`,
  })
  await using backend = await Backend.start(haproxy.port('s1'), 's1')
  const agent = new Agent({ keepAlive: true })
  const sockets: Socket[] = []
  for (const streams of STREAMS) {
    while (sockets.length < streams) {
      const wanted = Math.min(AT_ONCE, streams - sockets.length)
      const more = Array.from({ length: wanted }, () => createConnection(haproxy.port('many')))
      await Promise.all(more.map((socket) => once(socket, 'connect')))
      sockets.push(...more)
    }
    const accepted = async (): Promise<boolean> =>
      Number(/^CurrConns: (\d+)/m.exec(await haproxy.cli('show info'))?.[1]) >= streams
    await until(accepted, 'all are there', 60_000)
    for (const command of ['show sess', 'show sess backend web']) {
      const took: number[] = []
      let bytes = 0
      let worst = 0
      const before = backend.total
      const asking = new AbortController()
      const ask = async (): Promise<void> => {
        while (!asking.signal.aborted) {
          const from = performance.now()
          await request(haproxy.port('web'), '/', { agent })
          worst = Math.max(worst, performance.now() - from)
        }
      }
      const asked = ask()
      for (let n = 0; n < LISTS; n += 1) {
        const from = performance.now()
        bytes = (await haproxy.cli(command)).length
        took.push(performance.now() - from)
      }
      asking.abort()
      await asked
      console.log(
        `HAProxy ${engine.version}, ${streams} streams, '${command}': ${ms(quantile(took, 0.5))}, ${Math.round(bytes / 1_000)} KB; the longest of ${backend.total - before} other requests took ${ms(worst)}`,
      )
    }
  }
  for (const socket of sockets) socket.destroy()
  agent.destroy()
}

for (const engine of engines('haproxy', '2.6', '3.0', '3.2', '3.4')) {
  await late(engine)
  await cost(engine)
}
