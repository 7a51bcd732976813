/** The wrapper for a Nomad task, on a real HAProxy. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { request } from '../../support/haproxy-traffic.js'
import { COMMAND, EXAMPLES, openStage, start, type Stage, type Started } from './stage.js'

const FOLDER = join(EXAMPLES, 'nomad')

/** An app that says that it runs, that it was told to stop, and in which state its server was then. */
const APP = `
const { writeFileSync } = require('node:fs')
process.on('SIGTERM', () => { writeFileSync('told', ''); process.exit(7) })
if (process.argv[1] === 'fails') process.exit(5)
setInterval(() => {}, 1000)
writeFileSync('runs', '')
`

/** Starts the wrapper around an app, with `drainable` on its PATH. */
function wrap(
  stage: Stage,
  target: string,
  { balancer = stage.balancer, fails = false } = {},
): Started {
  const program = join(stage.folder, 'drainable')
  const words = COMMAND.map((word) => `'${word}'`).join(' ')
  writeFileSync(program, `#!/bin/sh\nexec ${words} "$@"\n`)
  chmodSync(program, 0o755)
  const shell = `cd "$HOME" && exec "$0" "$@"`
  const app = [process.execPath, '-e', APP, ...(fails ? ['fails'] : [])]
  return start('sh', ['-c', shell, join(FOLDER, 'drain-around.sh'), ...app], {
    HOME: stage.folder,
    PATH: `${stage.folder}:${process.env['PATH'] ?? ''}`,
    DRAINABLE_BALANCER: balancer,
    DRAINABLE_TARGET: target,
  })
}

const has = (stage: Stage, name: string): boolean => existsSync(join(stage.folder, name))

describe.each(engines('haproxy', '3.2'))('Nomad with HAProxy $version', (engine) => {
  test('the wrapper opens, drains when told to stop, then stops the app', async () => {
    await using stage = await openStage(engine)
    const { haproxy, s1 } = stage.lab
    await haproxy.cli('set server web/s1 state maint')
    const { child, ended } = wrap(stage, 'web/s1')
    await until(async () => (await stage.states('web/s1'))[0] === 'ready', 'it is ready')
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'a request is in flight')
    child.kill('SIGTERM')
    await until(async () => (await stage.states('web/s1'))[0] === 'drain', 'it is drained')
    expect(has(stage, 'told')).toBe(false)
    s1.release()
    expect(await ended).toMatchObject({ code: 7 })
    expect(await answer).toMatchObject({ status: 200 })
    expect(has(stage, 'told')).toBe(true)
    expect(await stage.states('web/s1')).toEqual(['maint'])
  })

  test('a second signal ends the drain, and the app is stopped', async () => {
    await using stage = await openStage(engine)
    const { haproxy, s1 } = stage.lab
    const { child, ended } = wrap(stage, 'web/s1')
    await until(() => has(stage, 'runs'), 'the app runs')
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'a request is in flight')
    child.kill('SIGTERM')
    await until(async () => (await stage.states('web/s1'))[0] === 'drain', 'it is drained')
    child.kill('SIGTERM')
    const { code, err } = await ended
    expect([code, has(stage, 'told')], err).toEqual([7, true])
    expect(err).toContain('the drain ended with status 143')
    s1.release()
    await answer
  })

  test('an app that ends by itself gives its own status', async () => {
    await using stage = await openStage(engine)
    expect(await wrap(stage, 'web/s1', { fails: true }).ended).toMatchObject({ code: 5 })
    expect(await stage.states('web/s1')).toEqual(['ready'])
  })

  test('a balancer that is away keeps nothing from starting or stopping', async () => {
    await using stage = await openStage(engine)
    const { child, ended } = wrap(stage, 'web/s1', {
      balancer: `haproxy:${stage.folder}/none.sock`,
    })
    await until(() => has(stage, 'runs'), 'the app runs')
    child.kill('SIGTERM')
    const { code, err } = await ended
    expect([code, has(stage, 'told')], err).toEqual([7, true])
    expect(err).toContain('the drain ended with status 7')
  })
})

test('Nomad waits longer than the drain', () => {
  const job = readFileSync(join(FOLDER, 'app.nomad.hcl'), 'utf8')
  const seconds = (name: string): number =>
    Number(new RegExp(`${name} *= "(\\d+)s"`).exec(job)?.[1])
  expect(seconds('kill_timeout')).toBeGreaterThan(seconds('DRAINABLE_DRAIN_TIMEOUT'))
})
