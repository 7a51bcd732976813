/** What a server-state file brings through a reload, and what it does not. */
import type { Engine } from '../../test/support/engines.ts'
import { Haproxy, until } from '../../test/support/haproxy.ts'
import { Backend, request } from '../../test/support/haproxy-traffic.ts'
import type { Fact } from './reload.ts'

const RELOADS = 5
/** Set at run time, each on a server of its own. */
const SETTINGS = ['drained', 'closed', 'weightless', 'moved'] as const

function config(stateFile: boolean): (port: (name: string) => number) => string {
  return (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  balance roundrobin
  cookie SRV insert
${stateFile ? '  load-server-state-from-file global\n' : ''}${[...SETTINGS, 'open'].map((name) => `  server ${name} 127.0.0.1:${port(name === 'open' ? 'open' : 'other')} cookie ${name}`).join('\n')}`
}

/** Facts about a reload with a file that was written right before it. */
export async function runStateFile(engine: Engine): Promise<Fact[]> {
  await using haproxy = await Haproxy.start({
    engine,
    config: config(true),
    global: '  server-state-file state',
  })
  await using other = await Backend.start(haproxy.port('other'), 'other')
  await using open = await Backend.start(haproxy.port('open'), 'open')
  for (const line of [
    'set server web/drained state drain',
    'set server web/closed state maint',
    'set server web/weightless weight 0',
    `set server web/moved addr 127.0.0.1 port ${haproxy.port('open')}`,
    'add server web/added 127.0.0.1:1',
  ])
    await haproxy.cli(line)
  await request(haproxy.port('web'), '/', { cookie: 'open' })
  await until(async () => (await port(haproxy, 'moved')) === haproxy.port('open'), 'moved')
  await haproxy.keepState()
  await haproxy.reload()
  const cell = (name: string, column: string): Promise<string> => haproxy.stat('web', name, column)
  const kept = (is: boolean): string => (is ? 'kept' : '**lost**')
  const facts: Fact[] = [
    ['drain', kept((await cell('drained', 'status')).startsWith('DRAIN'))],
    ['maintenance', kept((await cell('closed', 'status')).startsWith('MAINT'))],
    ['weight 0', kept((await cell('weightless', 'weight')) === '0')],
    ['an address set at run time', kept((await port(haproxy, 'moved')) === haproxy.port('open'))],
    ['a server added at run time', kept((await cell('added', 'status')) !== '')],
    ['its counters', kept((await cell('open', 'stot')) !== '0')],
  ]
  // What the file says is believed, however old it is.
  await haproxy.cli('set server web/closed state ready')
  await haproxy.reload()
  const stale = (await cell('closed', 'status')).startsWith('MAINT')
  facts.push([
    'a server made ready since, if the file was not written anew',
    stale ? '**back in maintenance**' : 'ready',
  ])
  if (open.total + other.total !== 1) throw new Error('the cookie was not honoured')
  return facts
}

async function port(haproxy: Haproxy, name: string): Promise<number> {
  const rows = (await haproxy.cli('show servers state web')).split('\n')
  const header =
    rows
      .find((row) => row.startsWith('# be_id'))
      ?.slice(2)
      .split(' ') ?? []
  const cells = rows.map((row) => row.split(' ')).find((row) => row[3] === name)
  return Number(cells?.[header.indexOf('srv_port')])
}

/** Whether requests with its cookie come to a server in maintenance while HAProxy is reloaded again and again. */
export async function runGap(engine: Engine, stateFile: boolean): Promise<Fact> {
  await using haproxy = await Haproxy.start({
    engine,
    config: config(stateFile),
    ...(stateFile ? { global: '  server-state-file state' } : {}),
  })
  await using closed = await Backend.start(haproxy.port('other'), 'other')
  await using open = await Backend.start(haproxy.port('open'), 'open')
  for (const name of SETTINGS) await haproxy.cli(`set server web/${name} state maint`)
  const over = new AbortController()
  const client = (async () => {
    while (!over.signal.aborted) await request(haproxy.port('web'), '/', { cookie: 'closed' })
  })()
  for (let count = 0; count < RELOADS; count += 1) {
    if (stateFile) await haproxy.keepState()
    await haproxy.reload()
    const before = open.total + closed.total
    await until(() => open.total + closed.total > before + 10, 'requests')
    if (!stateFile)
      for (const name of SETTINGS) await haproxy.cli(`set server web/${name} state maint`)
  }
  over.abort()
  await client
  const question = `requests with its cookie in ${RELOADS} reloads, ${stateFile ? 'with' : 'without'} the file`
  return [question, closed.total > 0 ? '**come to the server in maintenance**' : 'none comes to it']
}
