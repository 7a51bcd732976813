/** The command on a real HAProxy, as processes of their own. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EXIT } from '../../../src/cli/exit-code.js'
import { User } from '../../support/command-child.js'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { Client, lab } from '../../support/haproxy-lab.js'

const NODE = process.execPath

/** For a loaded machine, in milliseconds: what is waited for is there soon. */
const WITHIN = 60_000

/** Whether a ticket of the user says that a hold was carried out: a command killed before that leaves it to nobody. */
function isHeld({ home }: User): boolean {
  const folder = join(home, 'drainable')
  // Beside them is what is not yet renamed to a ticket.
  const files = (existsSync(folder) ? readdirSync(folder) : []).filter((file) =>
    /^drain-[\da-f-]+\.json$/.test(file),
  )
  return files.some(
    (file) => readFileSync(join(folder, file), 'utf8').match(/"set": ?"(drain|maint)"/) !== null,
  )
}

describe.each(engines('haproxy', '3.2'))('the command on HAProxy $version', (engine) => {
  async function open() {
    const it = await lab({ engine })
    const url = `haproxy:${it.haproxy.socket}?master=${it.haproxy.master}`
    return Object.assign(it, { url })
  }

  test('shows, plans, drains and makes ready, one verb after the other', async () => {
    await using it = await open()
    using user = new User()
    const shown = await user.type('status', it.url)
    expect(shown).toMatchObject({ code: 0, err: '' })
    expect(shown.out).toMatch(/web\/s1 .* ready /)
    expect((await user.type('plan', it.url, 'web/s1')).out).toContain('web/s1')
    const drained = await user.type('drain', it.url, 'web/s1')
    expect(drained.code).toBe(EXIT.ok)
    expect(drained.out).toMatch(/^web\/s1: idle after .*\n {2}0 in flight/)
    const { orphans } = await user.document('orphans', it.url)
    expect(orphans).toHaveLength(1)
    expect((await user.type('watch', it.url, 'web/s1', '--until-idle')).code).toBe(EXIT.ok)
    expect((await user.type('ready', it.url, 'web/s1')).code).toBe(EXIT.ok)
    // It owes nothing any more, so it is gone.
    expect(await user.document('orphans', it.url)).toMatchObject({ orphans: [] })
  })

  test('rolls a pool, and COMMAND learns its server', async () => {
    await using it = await open()
    using user = new User()
    const log = join(user.home, 'log')
    const append = `require('node:fs').appendFileSync(${JSON.stringify(log)}, process.env.DRAINABLE_MEMBER + ' ')`
    const flags = ['--group', 'ref', '--no-wait-healthy', '--json']
    const rolled = await user.type('roll', it.url, 'web', ...flags, '--', NODE, '-e', append)
    expect(rolled.err).toBe('')
    expect(rolled.code).toBe(EXIT.ok)
    expect(JSON.parse(rolled.out)).toMatchObject({ roll: { outcome: 'done' } })
    expect(existsSync(log)).toBe(true)
  })

  test('killed in mid-drain is an orphan, and is resumed with COMMAND', async () => {
    await using it = await open()
    using user = new User()
    using client = new Client(it.haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => it.s1.active === 1, 'in flight')
    await using first = user.begin('drain', it.url, 'web/s1')
    await until(() => isHeld(user), 'the ticket has the hold', WITHIN)
    first.kill('SIGKILL')
    await first.ended
    const { orphans = [] } = await user.document('orphans', it.url)
    expect(orphans).toHaveLength(1)
    it.s1.release()
    expect((await answer).cut).toBe(false)
    const resumed = await user.document('resume', it.url, '--', NODE, '-e', '')
    expect(resumed).toMatchObject({ exitCode: EXIT.ok, command: { status: 0 } })
    expect((await user.type('status', it.url, 'web/s1')).out).toMatch(/web\/s1 .* ready /)
    expect(await user.document('orphans', it.url)).toMatchObject({ orphans: [] })
  })

  test('killed in mid-drain is put back by restore', async () => {
    await using it = await open()
    using user = new User()
    using client = new Client(it.haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => it.s1.active === 1, 'in flight')
    await using first = user.begin('drain', it.url, 'web/s1')
    await until(() => isHeld(user), 'the ticket has the hold', WITHIN)
    first.kill('SIGKILL')
    await first.ended
    const restored = await user.document('restore', it.url)
    expect(restored).toMatchObject({ exitCode: EXIT.ok, report: { outcome: 'restored' } })
    expect((await user.type('status', it.url, 'web/s1')).out).toMatch(/web\/s1 .* ready /)
    it.s1.release()
    await answer
  })

  test.each([
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
  ] as const)('%s ends it by its policy, with a status of its own', async (name, code) => {
    await using it = await open()
    using user = new User()
    using client = new Client(it.haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => it.s1.active === 1, 'in flight')
    await using first = user.begin('drain', it.url, 'web/s1', '--on-abort', 'restore')
    await until(() => isHeld(user), 'the ticket has the hold', WITHIN)
    first.kill(name)
    expect(await first.ended).toMatchObject({ code })
    expect((await user.type('status', it.url, 'web/s1')).out).toMatch(/web\/s1 .* ready /)
    it.s1.release()
    await answer
  })

  test('a pipe that is closed early ends a watch, and no drain', async () => {
    await using it = await open()
    using user = new User()
    using client = new Client(it.haproxy.port('web'), 's1')
    const answer = client.ask('/stream')
    await until(() => it.s1.active === 1, 'in flight')
    await using watching = user.begin('watch', it.url, 'web/s1', '--jsonl')
    await until(() => watching.out !== '', 'first line', WITHIN)
    watching.closeStdout()
    expect(await watching.ended).toMatchObject({ code: EXIT.ok, err: '' })
    await using draining = user.begin('drain', it.url, 'web/s1', '--jsonl')
    await until(() => draining.out.includes('"draining"'), 'drains', WITHIN)
    draining.closeStdout()
    it.s1.release()
    expect(await draining.ended).toMatchObject({ code: EXIT.ok, err: '' })
    expect((await answer).cut).toBe(false)
  })

  test('a name from a configuration is a balancer', async () => {
    await using it = await open()
    using user = new User()
    const file = join(user.home, 'drainable.json')
    writeFileSync(file, JSON.stringify({ balancers: { edge: it.url } }))
    const ended = await user.type('status', 'edge', '--config', file, '--expect', '1', 'web/s1')
    expect(ended).toMatchObject({ code: EXIT.ok, err: '' })
  })
})
