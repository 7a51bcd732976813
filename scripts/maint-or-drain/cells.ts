/** One question to one HAProxy: this traffic, that action, what happens. */
import { type Haproxy, until } from '../../test/support/haproxy.ts'
import {
  type Answer,
  type Backend,
  request,
  type TcpBackend,
  Tunnel,
} from '../../test/support/haproxy-traffic.ts'

export const TRAFFIC = [
  'request',
  'stream',
  'websocket',
  'tcp',
  'sticky',
  'queued',
  'redispatched',
  'dead',
] as const
export type Traffic = (typeof TRAFFIC)[number]

export const ACTIONS = ['drain', 'maint', 'cutting', 'delete'] as const
export type Action = (typeof ACTIONS)[number]

/** Name of the backend that is there for one cell alone. */
export function cellName(traffic: Traffic, action: Action): string {
  return `${traffic}_${action}`
}

export interface Bench {
  readonly haproxy: Haproxy
  readonly s1: Backend
  readonly s2: Backend
  readonly echo: TcpBackend
}

/** How long a cut may take to show at the client, ms. It shows within some. */
const CUT_SHOWS = 400

/** Does the action to s1 of a backend; what HAProxy answered to it. */
async function act(haproxy: Haproxy, pool: string, action: Action): Promise<string> {
  const line = {
    drain: `set server ${pool}/s1 state drain`,
    maint: `set server ${pool}/s1 state maint`,
    cutting: `set server ${pool}/s1 state maint`,
    delete: `set server ${pool}/s1 state maint;del server ${pool}/s1`,
  }[action]
  return (await haproxy.cli(line)).trim()
}

async function cutWithin(look: () => boolean): Promise<boolean> {
  return until(() => look() || undefined, 'cut', CUT_SHOWS).catch(() => false)
}

function describeAnswer({ status, cut, server, body }: Answer, expected: string): string {
  if (status === 0) return 'connection closed, no answer'
  if (cut) return `**cut** after ${body.length} of ${expected.length} bytes`
  if (status !== 200) return `${status}`
  return body === expected ? `answered in full by ${server}` : `answered by ${server}`
}

/** Runs one cell. */
export async function runCell(bench: Bench, traffic: Traffic, action: Action): Promise<string> {
  const { haproxy, s1 } = bench
  const pool = cellName(traffic, action)
  switch (traffic) {
    case 'request':
    case 'stream': {
      const held = s1.held
      const answer = request(haproxy.port(pool), traffic === 'stream' ? '/stream' : '/hold', {
        cookie: 's1',
      })
      const state = { over: false }
      void answer.then(() => (state.over = true))
      await until(() => s1.held > held, `${pool} in flight`)
      const said = await act(haproxy, pool, action)
      await cutWithin(() => state.over)
      s1.release()
      const text = describeAnswer(await answer, traffic === 'stream' ? 'first;done' : 'done')
      return action === 'delete' ? `${text}; HAProxy: “${said}”` : text
    }
    case 'websocket':
    case 'tcp': {
      await using tunnel = await (traffic === 'tcp'
        ? Tunnel.tcp(haproxy.port(pool))
        : Tunnel.websocket(haproxy.port(pool), 's1'))
      const said = await act(haproxy, pool, action)
      if (await cutWithin(() => tunnel.closed)) return '**cut**'
      await tunnel.echo('still there')
      return action === 'delete' ? `goes on; HAProxy: “${said}”` : 'goes on'
    }
    case 'sticky': {
      await act(haproxy, pool, action)
      const { status, server } = await request(haproxy.port(pool), '/', { cookie: 's1' })
      return status === 200
        ? server === 's1'
          ? '**still goes to it**'
          : 'goes to another server'
        : `${status}`
    }
    case 'queued':
    case 'redispatched':
      return queued(bench, pool, action)
    case 'dead': {
      const down = async (): Promise<boolean> =>
        (await haproxy.stat(pool, 's1', 'status')).startsWith('DOWN')
      await until(down, `${pool} is down`)
      const said = await act(haproxy, pool, action)
      const status = await haproxy.stat(pool, 's1', 'status')
      return action === 'delete' ? `HAProxy: “${said}”` : `status ${status || 'gone'}`
    }
    default:
      throw traffic satisfies never
  }
}

/** One in flight, two queued for the server by their cookie. */
async function queued({ haproxy, s1, s2 }: Bench, pool: string, action: Action): Promise<string> {
  const held = s1.held
  const answers = [1, 2, 3].map(() => request(haproxy.port(pool), '/hold', { cookie: 's1' }))
  await until(async () => (await haproxy.stat(pool, 's1', 'qcur')) === '2', `${pool} queued`)
  const others = s2.held
  const said = await act(haproxy, pool, action)
  const moved = (): boolean => s2.held - others === 2
  const jumped = (): boolean => s1.held - held === 3
  await cutWithin(() => moved() || jumped())
  const what = jumped()
    ? '**all sent to it at once**, above its maxconn'
    : moved()
      ? 'moved to another server'
      : 'stay, and are **served by it** later'
  let over = false
  const all = Promise.all(answers).then((replies) => {
    over = true
    return replies
  })
  await until(() => {
    s1.release()
    s2.release()
    return over
  }, `${pool} answered`)
  const bad = (await all).filter(({ status, cut }) => status !== 200 || cut).length
  const text = `${what}${bad === 0 ? '' : `; ${bad} of 3 failed`}`
  return action === 'delete' ? `${text}; HAProxy: “${said}”` : text
}
