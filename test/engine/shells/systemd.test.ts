/** The drop-in for systemd: its commands on a real HAProxy, and its lines as systemd reads them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { request } from '../../support/haproxy-traffic.js'
import { saySkipped } from '../../support/skipped.js'
import { COMMAND, EXAMPLES, openStage, run, type Ended, type Stage } from './stage.js'

const DROP_IN = readFileSync(join(EXAMPLES, 'systemd', 'drainable.conf'), 'utf8')

/** The value of a line that stands there once, beside an empty one. */
function valueOf(name: string): string {
  const lines = DROP_IN.split('\n').filter((line) => line.startsWith(`${name}=`))
  const values = lines.map((line) => line.slice(name.length + 1)).filter((value) => value !== '')
  if (values.length !== 1) throw new Error(`${name} stands ${values.length} times`)
  return values[0] ?? ''
}

/** Runs a command of the drop-in as systemd does: no shell, `${NAME}` is one word. */
function runLine(stage: Stage, name: string, env: Record<string, string>): Promise<Ended> {
  const [program = '', ...words] = valueOf(name).split(' ')
  expect(program).toBe('-/usr/bin/drainable')
  const args = words.map((word) => word.replace(/\$\{(\w+)\}/g, (_, key: string) => env[key] ?? ''))
  const [node, ...source] = COMMAND
  return stage.run(node, [...source, ...args], env)
}

/** Of a time such as `90s` or `120`. */
const seconds = (text: string | undefined): number => Number(/^(\d+)s?$/.exec(text ?? '')?.[1])

describe.each(engines('haproxy', '3.2'))('systemd with HAProxy $version', (engine) => {
  test('ExecStop waits for the work, and ExecStartPost opens again', async () => {
    await using stage = await openStage(engine)
    const { haproxy, s1 } = stage.lab
    const env = {
      DRAINABLE_BALANCER: stage.balancer,
      DRAINABLE_TARGET: 'web/s1',
      DRAINABLE_TICKETS: join(stage.folder, 'tickets'),
    }
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'a request is in flight')
    let isStopped = false
    const stopping = runLine(stage, 'ExecStop', env).finally(() => (isStopped = true))
    await until(async () => (await stage.states('web/s1'))[0] === 'drain', 'it is drained')
    expect(isStopped).toBe(false)
    s1.release()
    expect(await stopping).toMatchObject({ code: 0 })
    expect(await answer).toMatchObject({ status: 200 })

    expect(await runLine(stage, 'ExecStartPost', env)).toMatchObject({ code: 0 })
    expect(await stage.states('web/s1')).toEqual(['ready'])
  })
})

test('systemd waits longer than the drain', () => {
  const [, drain] = /--timeout (\S+)/.exec(valueOf('ExecStop')) ?? []
  expect(seconds(valueOf('TimeoutStopSec'))).toBeGreaterThan(seconds(drain))
  const [, ready] = /--wait-healthy (\S+)/.exec(valueOf('ExecStartPost')) ?? []
  expect(seconds(valueOf('TimeoutStartSec'))).toBeGreaterThan(seconds(ready))
})

test('systemd finds no fault in the drop-in', async ({ skip }) => {
  const units = mkdtempSync(join(tmpdir(), 'drainable-units-'))
  onTestFinished(() => {
    rmSync(units, { recursive: true })
  })
  mkdirSync(join(units, 'app.service.d'))
  writeFileSync(join(units, 'app.service'), '[Service]\nExecStart=/bin/sleep infinity\n')
  // The command need not be installed here.
  const text = DROP_IN.replaceAll('/usr/bin/drainable', '/bin/true')
  writeFileSync(join(units, 'app.service.d', 'drainable.conf'), text)
  const args = ['verify', '--man=no', 'app.service']
  const found = await run('systemd-analyze', args, { SYSTEMD_UNIT_PATH: `${units}:` })
  if (found.code < 0) {
    saySkipped('no systemd-analyze to verify the drop-in with')
    return skip()
  }
  // An unknown line is said, and no failure.
  expect(found).toEqual({ code: 0, out: '', err: '' })
})
