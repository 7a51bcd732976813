import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import type { Series, SocketAddress } from 'drainable/testing/haproxy-runtime'
import { engines } from '../../support/engines.js'
import { ask } from '../../unit/testing/haproxy-runtime/ask.js'

/** Said to both, in this order, on a connection each: what the fake answers is judged by the product. */
const SCRIPT: readonly string[] = [
  'show servers state',
  'show servers state web',
  'show servers state nope',
  'show servers state web/web1',
  'show servers state #3',
  'show servers conn nope',
  'show stat web 1 -1',
  'show stat -1 4 -1',
  'show stat web 4 -1',
  'show stat #3 4 -1',
  'show stat 3 4 2',
  'show stat 3 4 99',
  'show stat back 4 -1',
  'show stat typed',
  'show stat -1 4 1 typed',
  'show stat -1 4 1 json',
  'show stat json',
  'show stat web 4 1 json',
  'show stat web 4 1 typed',
  'show stat nope 4 -1',
  'show stat web 4',
  'show backend',
  'show version',
  'show cli level',
  'show env HAPROXY_MWORKER',
  'show env NOPE',
  '  show    version  ',
  'set server',
  'set server web',
  'set server web/web1',
  'set server web/web1 foo',
  'set server web/web1 state',
  'set server web/web1 state bogus',
  'set server nope/web1 state drain',
  'set server web/nope state drain',
  'set server web/web1 state drain',
  'set server web/web1 state drain trailing words',
  'show servers state web',
  'show stat -1 4 -1',
  'set server web/web1 state maint',
  'show servers state',
  'show stat -1 4 -1',
  'set server web/web1 state drain',
  'set server #3/#1 state ready',
  'show servers state',
  'set server web/web2 weight',
  'set server web/web2 weight abc',
  'set server web/web2 weight 300',
  'set server web/web2 weight 50%',
  'set server web/web2 weight 0',
  'show stat -1 4 -1',
  'get weight web/web2',
  'set weight web/web2 1',
  'get weight web/web2',
  'get weight nope/web2',
  'disable server',
  'disable server web',
  'disable server nope/x',
  'disable server web/web2',
  'enable server web/nope',
  'enable server web/web2',
  'shutdown sessions server',
  'shutdown sessions server web',
  'shutdown sessions server nope/x',
  'shutdown sessions server web/web1',
  'shutdown session 0x1',
  'del server web/web2',
  'del server web/web1',
  'del server nope/x',
  'disable server web/web3;del server web/web3',
  'show servers state web',
  'add server web/n1',
  'add server web',
  'add server nope/n1 127.0.0.1:1',
  'add server web/web1 127.0.0.1:1',
  'add server web/n2 127.0.0.1:99 bogus',
  'add server web/n3 127.0.0.1:99 weight 7 maxconn 4',
  'show servers state web',
  'enable health web/n3',
  'enable server web/n3',
  'show servers state web',
  'del server web/n3',
  'disable server web/n3;del server web/n3;show version',
  'set server web/web1 addr 127.0.0.1',
  'clear counters',
  'clear counters all',
  'wait',
  'wait 10',
  'wait 1x',
  'wait 50ms srv-removable',
  'wait 50ms srv-removable web',
  'wait 50ms srv-removable web/nope',
  'wait 50ms srv-removable web/web1',
  'disable server web/web1;wait 50ms srv-removable back/b2',
  'set severity-output bogus',
  'set severity-output number;set server web/nope state drain',
  'set severity-output number;set server web/web1 state drain;show version',
  'set severity-output number;del server web/nope',
  'set severity-output number;wait 10ms',
  'set severity-output string;show version',
  'show servers state;show version',
  'set server web/web1 state ready;show servers state web',
  'show version\\;x',
  'set server back/b1 state drain',
  'show servers state back',
  'show stat back 4 -1',
  'disable server web/web1',
  'show servers state back',
  'show stat back 4 -1',
  'enable server web/web1',
  'enable server back/b1',
  'set server web/web1 state drain',
  'show servers state',
  'show stat back 4 -1',
  'enable server back/b2',
  'show servers state',
  'show stat -1 -1 -1 up',
  'show stat -1 -1 -1 no-maint',
  'set server back/b2 state drain',
  'show servers state back',
  'shutdown sessions server back/b2',
  'del server back/b2',
  'set server back/b2 state maint;del server back/b2',
  'show servers state',
  'set maxconn server back/b3',
  'set maxconn server back/b3 x',
  'set maxconn server back/b3 9',
  'show stat back 4 -1',
  'show sess server back/b3',
  'show sess backend back',
  'show sess backend nope',
  'set timeout cli',
  'set timeout cli 5s',
  'experimental-mode on',
  'operator;set server back/b3 state drain;show cli level',
  'user;show sess;show env NOPE;show stat back 4 -1',
]

/** What a client can go by: not ages, the process's own limits, or the list of every command there is. */
function comparable(reply: string): string {
  if (reply.startsWith('[')) return jsonByName(reply)
  const lines = reply
    .replace(/^0x[^]*fe=GLOBAL[^\n]*$/gm, 'OWN STREAM')
    .replace(/(Unknown command[^\n]*\n)[^]*/, '$1')
    .replace(/^(\d+ \S+ \d+ \S+ \S+ \d+ \d+ \d+ \d+) \d+/gm, '$1 AGE')
    .split('\n')
    .filter((line) => !isOwn(line))
  const columns = lines
    .find((line) => line.startsWith('# pxname'))
    ?.slice(2)
    .split(',')
  return lines.map((line) => (columns ? rowByName(line, columns) : line)).join('\n')
}

const OWN = new Set([
  ...['lastchg', 'downtime', 'lastsess', 'check_duration', 'rate_max', 'rate'],
  ...['need_conn_est', 'agg_server_status', 'agg_server_check_status', 'agg_check_status'],
])

/** A field of the typed form that is the process's own. */
function isOwn(line: string): boolean {
  const [, object, name = ''] = /^([FBS])\.\d+\.\d+\.\d+\.(\w+)\.1:/.exec(line) ?? []
  return OWN.has(name) || (name === 'slim' && object !== 'S')
}

function jsonByName(reply: string): string {
  interface Field {
    readonly objType: string
    readonly field: { readonly name: string }
  }
  const rows = JSON.parse(reply) as readonly (readonly Field[])[]
  const fields = rows.flat().filter(({ objType, field: { name } }) => {
    return !OWN.has(name) && !(name === 'slim' && objType !== 'Server')
  })
  return fields.map((field) => JSON.stringify(field)).join('\n')
}

function rowByName(row: string, columns: readonly string[]): string {
  const values = row.split(',')
  if (row.startsWith('#') || values.length !== columns.length) return row
  const named = columns.map((name, i) => {
    const isLimit = name === 'slim' && values[1] !== 'FRONTEND' && values[1] !== 'BACKEND'
    const isOwn = OWN.has(name) || (name === 'slim' && !isLimit)
    return isOwn || values[i] === '' ? '' : `${name}=${values[i]}`
  })
  return named.filter(Boolean).join(' ')
}

/** The words that only one of the two said. */
function difference(line: string, wanted: string, found: string): string {
  const words = (text: string): string[] => text.split(/[\n ]/)
  const [one, other] = [words(wanted), words(found)]
  const only = (a: readonly string[], b: readonly string[]): string => {
    return a
      .filter((word) => !b.includes(word))
      .slice(0, 12)
      .join(' ')
  }
  return `${line}\n  HAProxy: ${only(one, other)}\n  fake:    ${only(other, one)}`
}

/** The versions that the fake speaks. */
const KNOWN = ['2.6', '3.0', '3.2']

describe.each(engines('haproxy', ...KNOWN))(
  'the fake beside HAProxy $version',
  ({ series, path }) => {
    const version: Series = series === '2.6' || series === '3.0' ? series : '3.2'

    test('answers the same to every line', { timeout: 60_000 }, async () => {
      await using backend = await listening()
      const { port } = backend
      await using real = await startReal(path, port)
      await using fake = await startFake({
        version,
        master: true,
        frontends: { web: {} },
        pools: {
          web: [
            { name: 'web1', port, check: { inter: 20_000 } },
            { name: 'web2', port, weight: 1 },
            { name: 'web3', port, backup: true },
          ],
          back: [
            { name: 'b1', port, track: 'web/web1' },
            { name: 'b2', port, disabled: true },
            { name: 'b3', port, weight: 5, maxconn: 3 },
          ],
        },
      })
      for (const at of [real.socket, fake.socket]) {
        while (!/L4OK/.test(await ask(at, 'show stat\n'))) await sleep(25)
      }
      const differences: string[] = []
      for (const line of SCRIPT) {
        const [wanted, found] = await Promise.all(
          [real.socket, fake.socket].map((at) => ask(at, `${line}\n`, { for: 10_000 })),
        )
        const [is, should] = [found, wanted].map((reply) => comparable(reply ?? ''))
        if (is !== should) differences.push(difference(line, should ?? '', is ?? ''))
      }
      expect(differences.join('\n\n')).toBe('')
    })

    test('frames its replies the same way', { timeout: 120_000 }, async () => {
      await using real = await startReal(path, 1)
      await using fake = await startFake({
        version,
        frontends: { web: {} },
        pools: { web: ['web1'], back: ['b1'] },
      })
      const both = async (text: string, silence = 3_000): Promise<void> => {
        const [wanted, found] = await Promise.all(
          [real.socket, fake.socket].map((at) => ask(at, text, { for: silence })),
        )
        const times = (reply = ''): string => reply.replaceAll(/\[\d:\d\d:\d\d:\d\d\]/g, '[TIME]')
        expect(comparable(times(found)), JSON.stringify(text.slice(0, 60))).toBe(
          comparable(times(wanted)),
        )
      }
      await both('show version\nshow cli level\n')
      await both('show version\r\n')
      await both('show version')
      await both('prompt\nshow version;show cli level\nset server web/web1 state drain\n')
      await both('prompt i\nshow version;show cli level\n')
      await both('prompt n\nshow version\n')
      await both('prompt timed\nshow version\n')
      await both('prompt;show version\nshow cli level\nquit\n')
      await both(`show version${';show cli level'.repeat(200)}\n`)
      await both(`show version${';show cli level'.repeat(1_500)}\n`)
      await both(`show version ${'x '.repeat(70)}\n`)
      if (version !== '2.6') await both('\n')
      await both(';show version\n')
    })
  },
)

async function listening(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => void server.close(),
  }
}

async function startReal(
  path: string,
  port: number,
): Promise<AsyncDisposable & { readonly socket: SocketAddress }> {
  const folder = await mkdtemp(join(tmpdir(), 'fake-'))
  const socket = join(folder, 'admin.sock')
  const config = join(folder, 'haproxy.cfg')
  await writeFile(
    config,
    `global
  stats socket ${socket} mode 600 level admin
defaults
  mode http
  timeout connect 1s
  timeout client 5s
  timeout server 5s
frontend web
  bind unix@${join(folder, 'web.sock')}
  default_backend web
backend web
  server web1 127.0.0.1:${port}${port === 1 ? '' : ' check inter 20s'}
${port === 1 ? '' : `  server web2 127.0.0.1:${port}\n  server web3 127.0.0.1:${port} backup`}
backend back
${port === 1 ? '  server b1 127.0.0.1:1' : `  server b1 127.0.0.1:${port} track web/web1\n  server b2 127.0.0.1:${port} disabled\n  server b3 127.0.0.1:${port} weight 5 maxconn 3`}
`,
  )
  const master = ['-W', '-S', `${join(folder, 'master.sock')},level,admin`]
  const child = spawn(path, [...(port === 1 ? [] : master), '-db', '-f', config], {
    stdio: 'ignore',
  })
  for (let i = 0; ; i++) {
    const up = await ask(socket, 'show version\n').catch(() => '')
    if (up !== '') break
    if (i > 200 || child.exitCode !== null) throw new Error('HAProxy did not start')
    await sleep(25)
  }
  return {
    socket,
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}
