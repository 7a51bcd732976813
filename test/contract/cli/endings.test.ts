import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake, type FakeOptions, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { EXIT } from '../../../src/cli/exit-code.js'
import { TestIo } from '../../support/command.js'
import { User } from '../../support/command-child.js'
import { openDataplane, openEnvoy } from './products.js'
import { haproxyUrl } from '../../support/haproxy-url.js'
import { until } from '../../support/wait.js'

const web1 = { pool: 'web', member: 'web1' }
const NODE = process.execPath
const SOON = ['--timeout', '30s']

function fakeHaproxy(more: FakeOptions = {}): Promise<HaproxyFake> {
  return startFake({ pools: { web: ['web1', 'web2'] }, master: true, ...more })
}

/** COMMAND as a program of Node. */
function script(code: string): readonly string[] {
  return ['--', NODE, '-e', code]
}

/** A COMMAND that ends when it is told to. */
const WAITS = script('setInterval(() => 0, 1000)')

describe.concurrent('the exit status', () => {
  test('is that of a timeout, and the member stays drained', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const end = await fake.occupy(web1)
    const ended = await io.document('drain', haproxyUrl(fake), 'web/web1', '--timeout', '2500ms')
    expect([ended.exitCode, ended.error?.code]).toEqual([EXIT.timeout, 'DRAIN_TIMEOUT'])
    expect([ended.changed, fake.adminMask(web1)]).toEqual([true, 8])
    expect(ended.ticket).toBeTypeOf('string')
    await end()
  })

  test('is that of a cut where the policy cuts', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const end = await fake.occupy(web1)
    const flags = ['--timeout', '2500ms', '--on-timeout', 'terminate']
    const { exitCode } = await io.document('drain', haproxyUrl(fake), 'web/web1', ...flags)
    expect(exitCode).toBe(EXIT.cut)
    await end().catch(() => undefined)
  })

  test('is that of an idle that is not verified', async () => {
    await using lb = await openDataplane()
    using io = new TestIo(lb.env)
    const ended = await io.document('drain', lb.url, lb.a, ...lb.flags, ...SOON)
    expect(ended.exitCode).toBe(EXIT.unverified)
    expect(ended.report?.members).toMatchObject([{ outcome: 'idle', verifiedIdle: false }])
  })

  test('is that of a guard, and nothing is changed', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const ended = await io.document('drain', haproxyUrl(fake), 'web/', ...SOON)
    expect([ended.exitCode, ended.changed, ended.error?.code]).toEqual([
      EXIT.refused,
      false,
      'POOL_AT_MINIMUM',
    ])
    expect(fake.adminMask(web1)).toBe(0)
  })

  test('is that of a guard, whose way out is a flag in a document too', async () => {
    await using fake = await fakeHaproxy({ pools: { web: ['web1'] } })
    using io = new TestIo()
    const { out } = await io.play('drain', haproxyUrl(fake), 'web/web1', ...SOON, '--json')
    expect(out).toContain('--on-minimum wait waits for it')
    expect(out).not.toContain('onMinimum')
  })

  test('is that of another number of members, in a plan as in a drain', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    for (const verb of ['plan', 'drain']) {
      const { exitCode, error } = await io.document(verb, haproxyUrl(fake), 'web/', '--expect', '5')
      expect([verb, exitCode, error?.code]).toEqual([verb, EXIT.refused, 'REJECTED'])
    }
  })

  test('is that of a missing member, and the nearest is named', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const { exitCode, error } = await io.document('drain', haproxyUrl(fake), 'web/wbe1')
    expect([exitCode, error?.message]).toEqual([EXIT.missing, expect.stringContaining('web1')])
  })

  test('is that of a balancer that nothing answers for', async () => {
    using io = new TestIo()
    const { exitCode, error } = await io.document('status', 'haproxy:/nowhere/admin.sock')
    expect([exitCode, error?.code]).toEqual([EXIT.unreachable, 'UNREACHABLE'])
  })

  test('is that of a watch that never saw its balancer', async () => {
    using io = new TestIo()
    const flags = ['--on-unreachable', 'wait', '--timeout', '1500ms']
    const { code, err } = await io.play('watch', 'haproxy:/nowhere/admin.sock', 'web/', ...flags)
    expect(code).toBe(EXIT.unreachable)
    expect(err).toBe('drainable: --timeout: the balancer could not be read before it was over\n')
  })

  test('is that of a missing right', async () => {
    await using fake = await fakeHaproxy({ level: 'user' })
    using io = new TestIo()
    const { exitCode } = await io.document('drain', haproxyUrl(fake), 'web/web1', ...SOON)
    expect(exitCode).toBe(EXIT.rights)
  })

  test('is that of a wrong password, which is not printed', async () => {
    await using fake = await startBigip({ pools: { web: ['10.0.0.1:80'] } })
    using io = new TestIo({ DRAINABLE_PASSWORD: 'hunter2' })
    const url = `bigip+${fake.url}`
    const flags = ['--username', 'admin', '--insecure']
    const { code, out, err } = await io.play('status', url, ...flags)
    expect(code).toBe(EXIT.rights)
    expect(out + err).not.toContain('hunter2')
  })

  test('is that of what the product can not do', async () => {
    await using envoy = await openEnvoy()
    using io = new TestIo()
    const flags = ['--hold', 'maint']
    const { exitCode, error } = await io.document('drain', envoy.url, envoy.a, ...flags)
    expect([exitCode, error?.code]).toEqual([EXIT.unsupported, 'UNSUPPORTED'])
  })

  test('is that of a member that no check sees healthy', async () => {
    const pools = { web: [{ name: 'web1', check: true }, 'web2'] }
    await using fake = await fakeHaproxy({ pools })
    using io = new TestIo()
    fake.setHealth(web1, 'down')
    const flags = ['--wait-healthy', '2s'] // the first look is within it
    const { exitCode, error } = await io.document('ready', haproxyUrl(fake), 'web/web1', ...flags)
    expect([exitCode, error?.code]).toEqual([EXIT.unhealthy, 'HEALTH_TIMEOUT'])
  })

  test('is that of a damaged ticket', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const folder = join(io.home, 'tickets')
    mkdirSync(folder)
    writeFileSync(join(folder, 'mine.json'), '{"v":1}')
    const flags = ['--tickets', folder]
    const { exitCode } = await io.document('restore', haproxyUrl(fake), 'mine', ...flags)
    expect(exitCode).toBe(EXIT.ticket)
  })
})

describe.concurrent('COMMAND', () => {
  test('that fails leaves the member drained', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const ended = await io.document(
      'drain',
      haproxyUrl(fake),
      'web/web1',
      ...SOON,
      ...script('process.exit(7)'),
    )
    expect(ended).toMatchObject({
      exitCode: EXIT.command,
      changed: true,
      command: { status: 7, signal: null },
    })
    expect(ended.ticket).toBeTypeOf('string')
    expect(fake.adminMask(web1)).not.toBe(0)
  })

  test('that a signal ends is said with the signal', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const kill = script(`process.kill(process.pid, 'SIGKILL')`)
    const ended = await io.document('drain', haproxyUrl(fake), 'web/web1', ...SOON, ...kill)
    expect(ended).toMatchObject({
      exitCode: EXIT.command,
      command: { status: null, signal: 'SIGKILL' },
      error: { message: expect.stringContaining('was ended by SIGKILL') as string },
    })
  })

  test('that is not there is an error of COMMAND', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const ended = await io.document(
      'drain',
      haproxyUrl(fake),
      'web/web1',
      ...SOON,
      '--',
      '/no/such',
    )
    expect(ended).toMatchObject({ exitCode: EXIT.command, error: { code: 'ACTION_FAILED' } })
    expect(ended.error?.message).toContain('(ENOENT): the member stays drained')
  })

  test('leaves as found what was out before, and says so', async () => {
    await using fake = await fakeHaproxy({ pools: { web: ['web1', 'web2', 'web3'] } })
    using io = new TestIo()
    await fake.setBehind({ pool: 'web', member: 'web2' }, 'maint')
    const targets = ['web/web1', 'web/web2']
    const ended = await io.document('drain', haproxyUrl(fake), ...targets, ...SOON, ...script(''))
    expect(ended).toMatchObject({ exitCode: EXIT.ok, leftAsFound: ['web/web2'] })
    expect(ended.ready?.members).toHaveLength(1)
    expect(ended.ticket).toBeUndefined()
    expect(fake.adminMask(web1)).toBe(0)
    expect(fake.adminMask({ pool: 'web', member: 'web2' })).not.toBe(0)
  })

  test('does not call a member that it has removed left as it was found', async () => {
    await using fake = await fakeHaproxy({ pools: { web: ['web1', 'web2', 'web3'] } })
    using io = new TestIo()
    await fake.setBehind(web1, 'maint')
    const flags = [...SOON, '--until', 'removed', ...script('')]
    const { code, out } = await io.play('drain', haproxyUrl(fake), 'web/web1', 'web/web2', ...flags)
    expect(code).toBe(EXIT.ok)
    expect(out).toContain('web/web1: removed after')
    expect(out).toContain('web/web2: removed after')
    expect(out).not.toContain('left as it was found')
  })

  test('does not call a member that another client removed left as it was found', async () => {
    await using fake = await fakeHaproxy({ pools: { web: ['web1', 'web2'] } })
    using io = new TestIo()
    await fake.setBehind(web1, 'drain')
    const [begun, go] = [join(io.home, 'begun'), join(io.home, 'go')]
    const code = `
      const { existsSync, writeFileSync } = require('node:fs')
      writeFileSync(${JSON.stringify(begun)}, '')
      setInterval(() => existsSync(${JSON.stringify(go)}) && process.exit(0), 20)`
    const ended = io.play('drain', haproxyUrl(fake), 'web/web1', ...SOON, ...script(code))
    await until(() => existsSync(begun), 'COMMAND')
    await fake.setBehind(web1, 'gone')
    writeFileSync(go, '')
    const { out, err } = await ended
    expect(err).toContain('web/web1 is not in the pool any more: another client removed it')
    expect(out).not.toContain('left as it was found')
  })

  test('does not open what an operator closed while COMMAND ran, and says so', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const [begun, go] = [join(io.home, 'begun'), join(io.home, 'go')]
    const code = `
      const { existsSync, writeFileSync } = require('node:fs')
      writeFileSync(${JSON.stringify(begun)}, '')
      setInterval(() => existsSync(${JSON.stringify(go)}) && process.exit(0), 20)`
    const flags = [...SOON, '--no-seal', ...script(code)]
    const ended = io.document('drain', haproxyUrl(fake), 'web/web1', ...flags)
    await until(() => existsSync(begun), 'COMMAND')
    await fake.setBehind(web1, 'maint')
    const closed = fake.adminMask(web1)
    writeFileSync(go, '')
    const { exitCode, error } = await ended
    expect(fake.adminMask(web1)).toBe(closed)
    expect([exitCode, error?.code]).toEqual([EXIT.refused, 'CONFLICT'])
    expect(error?.message).toContain("it is 'maint', set by another client; it was left alone")
  })

  test('leaves an Envoy endpoint in the health status that it had', async () => {
    await using lb = await openEnvoy('DEGRADED')
    using io = new TestIo()
    const { exitCode } = await io.document('drain', lb.url, lb.a, ...SOON, ...script(''))
    expect(exitCode).toBe(EXIT.ok)
    expect(await readFile(lb.file, 'utf8')).toContain('DEGRADED')
  })

  test('with --leave is not followed by an opening', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const flags = [...SOON, '--leave', ...script('')]
    const ended = await io.document('drain', haproxyUrl(fake), 'web/web1', ...flags)
    expect([ended.exitCode, ended.ready]).toEqual([EXIT.ok, undefined])
    expect(fake.adminMask(web1)).not.toBe(0)
  })

  test('learns its member and its address', async () => {
    await using fake = await fakeHaproxy({
      pools: { web: [{ name: 'web1', address: '10.0.0.7' }, 'web2'] },
    })
    using io = new TestIo()
    const code = `
      const { DRAINABLE_MEMBER: a, DRAINABLE_MEMBERS: b, DRAINABLE_ADDRESS: c } = process.env
      process.exit([a, b, c].join() === 'web/web1,web/web1,10.0.0.7' ? 0 : 9)`
    const ended = await io.document('drain', haproxyUrl(fake), '10.0.0.7', ...SOON, ...script(code))
    expect(ended.exitCode).toBe(EXIT.ok)
  })

  test.each(['drain', 'resume'])(
    'of %s is ended when another client opens the member',
    async (verb) => {
      await using fake = await fakeHaproxy()
      using io = new TestIo()
      const begun = join(io.home, 'begun')
      const text = `require('node:fs').writeFileSync(${JSON.stringify(begun)}, '')`
      const waits = script(`${text}; setInterval(() => 0, 1000)`)
      const url = haproxyUrl(fake)
      if (verb === 'resume')
        await io.document('drain', url, 'web/web1', ...SOON, '--id', 'mine', '--leave')
      const ended =
        verb === 'resume'
          ? io.document('resume', url, 'mine', ...waits)
          : io.document('drain', url, 'web/web1', ...SOON, ...waits)
      await until(() => existsSync(begun), 'COMMAND')
      await fake.setBehind(web1, 'ready')
      expect(await ended).toMatchObject({
        exitCode: EXIT.overruled,
        command: { status: null, signal: 'SIGTERM' },
      })
    },
  )

  test('of a second drain leaves the member to the first one', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    using user = new User() // two drains of one process know of each other
    const url = haproxyUrl(fake)
    await using first = user.begin('drain', '--json', url, 'web/web1', ...SOON, ...WAITS)
    await until(() => fake.adminMask(web1) === 1, 'the hold of the first')
    const second = io.document('drain', url, 'web/web1', ...SOON, ...script(''))
    expect(await second).toMatchObject({ exitCode: EXIT.ok, leftAsFound: ['web/web1'] })
    expect(fake.adminMask(web1)).toBe(1)
    first.kill('SIGTERM')
    const { out } = await first.ended
    expect(JSON.parse(out)).toMatchObject({ exitCode: EXIT.terminated, changed: true })
  })
})

describe.concurrent("a balancer's answer", () => {
  test('is printed without its control characters', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    fake.fail({ match: /^set server/, how: 'status', body: 'no \u001b[31mway\u0007 at all\n' })
    const { code, out, err } = await io.play('drain', haproxyUrl(fake), 'web/web1', ...SOON)
    expect(code).toBe(EXIT.refused)
    expect(err).toContain('way')
    expect(out + err).not.toMatch(/(?!\n)\p{Cc}/u)
  })
})

describe.concurrent('a signal', () => {
  test.each([
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
    ['SIGHUP', EXIT.hangup],
  ] as const)('%s ends a drain by its policy', async (name, code) => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const end = await fake.occupy(web1)
    const ended = io.document('drain', haproxyUrl(fake), 'web/web1', ...SOON)
    await until(() => fake.adminMask(web1) === 8, 'hold')
    io.signal(name)
    expect(await ended).toMatchObject({ exitCode: code, changed: true, error: { code: name } })
    expect(fake.adminMask(web1)).toBe(8)
    await end()
  })

  test('puts the member back with --on-abort restore', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const end = await fake.occupy(web1)
    const flags = [...SOON, '--on-abort', 'restore']
    const ended = io.document('drain', haproxyUrl(fake), 'web/web1', ...flags)
    await until(() => fake.adminMask(web1) === 8, 'hold')
    io.signal('SIGINT')
    expect(await ended).toMatchObject({ exitCode: EXIT.interrupted })
    expect(fake.adminMask(web1)).toBe(0)
    await end()
  })

  test('that comes twice ends the process at once', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const end = await fake.occupy(web1)
    const ended = io.run('drain', haproxyUrl(fake), 'web/web1', ...SOON)
    await until(() => fake.adminMask(web1) === 8, 'hold')
    io.signal('SIGINT')
    expect(io.stderr.text).toContain('once more to end at once')
    io.signal('SIGINT')
    expect(io.ended).toBe(EXIT.interrupted)
    expect(io.stderr.text).toContain("'drainable orphans BALANCER' lists it")
    await ended
    await end()
  })
})

describe.concurrent('a pipe that is closed early', () => {
  test('ends a watch quietly', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const end = await fake.occupy(web1)
    const watching = io.run('watch', haproxyUrl(fake), 'web/web1')
    await until(() => io.stdout.text, 'first line')
    io.stdout.close()
    expect(await watching).toBe(EXIT.ok)
    expect(io.stderr.text).toBe('')
    await end()
  })

  test('does not end a drain', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    io.stdout.close()
    expect(await io.run('drain', haproxyUrl(fake), 'web/web1', ...SOON, '--jsonl')).toBe(EXIT.ok)
    expect(fake.adminMask(web1)).not.toBe(0)
  })
})

describe.concurrent('several balancers of a configuration', () => {
  async function configured(
    io: TestIo,
    all: Readonly<Record<string, HaproxyFake>>,
    more: object = {},
  ) {
    const file = join(io.home, 'drainable.json')
    const balancers = Object.fromEntries(
      Object.entries(all).map(([name, fake]) => [name, haproxyUrl(fake)]),
    )
    writeFileSync(file, JSON.stringify({ balancers, tickets: 'tickets', ...more }))
    return ['--config', file]
  }

  test('are drained together by all', async () => {
    await using east = await fakeHaproxy()
    await using west = await fakeHaproxy()
    using io = new TestIo()
    const config = await configured(io, { east, west })
    const flags = [...config, ...SOON, '--expect', '2']
    const both = ['east:web/web1', 'west:web/web1']
    const ended = await io.document('drain', 'all', ...both, ...flags)
    expect(ended.exitCode).toBe(EXIT.ok)
    expect([east.adminMask(web1), west.adminMask(web1)]).not.toContain(0)
    const back = await io.document('ready', 'east,west', ...both, ...config)
    expect(back.exitCode).toBe(EXIT.ok)
    expect([east.adminMask(web1), west.adminMask(web1)]).toEqual([0, 0])
  })

  test('are drained but for one that is away, where that is wished', async () => {
    await using east = await fakeHaproxy()
    const west = await fakeHaproxy()
    using io = new TestIo()
    const config = await configured(io, { east, west })
    await west.close()
    const both = ['east:web/web1', 'west:web/web1']
    const refused = await io.document('drain', 'all', ...both, ...config, ...SOON)
    expect([refused.exitCode, east.adminMask(web1)]).toEqual([EXIT.unreachable, 0])
    const waits = ['--on-unreachable', 'wait', '--timeout', '4s']
    const ended = await io.document('drain', 'all', ...both, ...config, ...waits)
    expect(ended.exitCode).toBe(EXIT.unreachable)
    expect(east.adminMask(web1)).not.toBe(0)
  })

  test('take what onMissing says', async () => {
    await using east = await fakeHaproxy()
    await using west = await fakeHaproxy()
    using io = new TestIo()
    const config = await configured(io, { east, west }, { onMissing: 'skip' })
    const seen = await io.document('status', 'all', ...config)
    expect(seen.exitCode).toBe(EXIT.ok)
  })

  test('are for targets that name one: of one alone, the name is refused', async () => {
    await using east = await fakeHaproxy()
    using io = new TestIo()
    const { code, err } = await io.play(
      'drain',
      'east',
      'east:web/web1',
      ...(await configured(io, { east })),
    )
    expect([code, err]).toEqual([EXIT.usage, expect.stringContaining("leave out 'east:'")])
  })

  test('are named where one is mistyped', async () => {
    await using east = await fakeHaproxy()
    using io = new TestIo()
    const { err } = await io.play('status', 'esat', ...(await configured(io, { east })))
    expect(err).toContain("did you mean 'east'?")
  })
})
