/**
 * Measures on every HAProxy of the engines folder what drain, maintenance, deletion and a reload do
 * to traffic, and writes docs/maint-or-drain.md. `npm run maint-or-drain`
 */
import { writeFileSync } from 'node:fs'
import { type Engine, engines } from '../../test/support/engines.ts'
import { Haproxy } from '../../test/support/haproxy.ts'
import { Backend, TcpBackend } from '../../test/support/haproxy-traffic.ts'
import { ACTIONS, runCell, TRAFFIC } from './cells.ts'
import { cellsConfig } from './config.ts'
import { key, type Seen, toPage } from './page.ts'
import { runHardStop, runReload } from './reload.ts'
import { runGap, runStateFile } from './state-file.ts'

async function measure(engine: Engine): Promise<Seen> {
  await using haproxy = await Haproxy.start({ engine, mode: 'plain', config: cellsConfig })
  await using s1 = await Backend.start(haproxy.port('s1'), 's1')
  await using s2 = await Backend.start(haproxy.port('s2'), 's2')
  await using echo = await TcpBackend.start(haproxy.port('echo'))
  const cells = new Map<string, string>()
  for (const traffic of TRAFFIC) {
    for (const action of ACTIONS) {
      const seen = await runCell({ haproxy, s1, s2, echo }, traffic, action)
      cells.set(key(traffic, action), seen)
      process.stdout.write(`${engine.version}  ${key(traffic, action).padEnd(22)} ${seen}\n`)
    }
  }
  const facts = [...(await runReload(engine)), ...(await runHardStop(engine))]
  const gaps = [await runGap(engine, false), await runGap(engine, true)]
  const stateFile = [...(await runStateFile(engine)), ...gaps]
  for (const [question, answer] of [...facts, ...stateFile]) {
    process.stdout.write(`${engine.version}  ${question}: ${answer}\n`)
  }
  return { version: engine.version, cells, facts, stateFile }
}

const found = engines('haproxy')
if (found.length === 0) process.exitCode = 1
else {
  const seen: Seen[] = []
  for (const engine of found) seen.push(await measure(engine))
  const page = new URL('../../docs/maint-or-drain.md', import.meta.url)
  writeFileSync(page, toPage(seen))
  process.stdout.write(`wrote ${page.pathname.split('/').slice(-2).join('/')}\n`)
}
