/** What a reload does to a drained server, as seen from both workers. */
import type { Engine } from '../../test/support/engines.ts'
import { cli, Haproxy, until } from '../../test/support/haproxy.ts'
import { Backend, request } from '../../test/support/haproxy-traffic.ts'
import { reloadConfig } from './config.ts'

/** Question and answer. */
export type Fact = readonly [string, string]

/** The master executes itself anew at a reload and does not listen for a moment. */
function askMaster(haproxy: Haproxy, line: string): Promise<string> {
  return until(
    () => cli(haproxy.master, `${line};quit`).catch(() => undefined),
    'the master answers',
  )
}

/** A stream in flight on a drained server, then a reload. */
export async function runReload(engine: Engine): Promise<Fact[]> {
  await using haproxy = await Haproxy.start({ engine, config: reloadConfig })
  await using s1 = await Backend.start(haproxy.port('s1'), 's1')
  await using s2 = await Backend.start(haproxy.port('s2'), 's2')
  const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
  await until(() => s1.held === 1, 'in flight')
  const old = await haproxy.pid()
  await haproxy.cli('set server web/s1 state drain')
  await haproxy.reload()
  const column = (name: string): Promise<string> => haproxy.stat('web', 's1', name)
  const facts: Fact[] = [
    [
      'the new worker says of the drained server',
      `status ${await column('status')}, scur ${await column('scur')}`,
    ],
    ['the old worker says (through the master socket)', await oldRow(haproxy, old)],
    [
      'a new request with its cookie goes to',
      (await request(haproxy.port('web'), '/', { cookie: 's1' })).server,
    ],
    [
      'changing it in the old worker answers',
      (await askMaster(haproxy, `@!${old} set server web/s1 state maint`)).trim(),
    ],
  ]
  s1.release()
  const { cut, body } = await answer
  facts.push(['the stream that was in flight', cut ? `**cut** (“${body}”)` : 'answered in full'])
  await until(
    async () => !(await askMaster(haproxy, 'show proc')).includes('# old workers'),
    'the old worker ends',
  )
  facts.push(['the old worker', 'ends with its last connection'])
  if (s2.total > 0) throw new Error('the cookie was not honoured')
  return facts
}

async function oldRow(haproxy: Haproxy, pid: number): Promise<string> {
  const reply = await askMaster(haproxy, `@!${pid} show stat -1 4 -1`)
  const [header = '', ...rows] = reply.trim().split('\n')
  const columns = header.slice(2).split(',')
  const cells = rows
    .map((row) => row.split(','))
    .find(([pool, name]) => pool === 'web' && name === 's1')
  const cell = (name: string): string => cells?.[columns.indexOf(name)] ?? '?'
  return `status ${cell('status')}, scur ${cell('scur')}`
}

/** The same with `hard-stop-after 1s`. */
export async function runHardStop(engine: Engine): Promise<Fact[]> {
  await using haproxy = await Haproxy.start({
    engine,
    config: reloadConfig,
    global: '  hard-stop-after 1s',
  })
  await using s1 = await Backend.start(haproxy.port('s1'), 's1')
  const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
  await until(() => s1.held === 1, 'in flight')
  await haproxy.reload()
  const { cut, body } = await answer
  return [
    [
      'the same under `hard-stop-after 1s`',
      cut ? `**cut** after ${body.length} of 10 bytes` : 'answered in full',
    ],
  ]
}
