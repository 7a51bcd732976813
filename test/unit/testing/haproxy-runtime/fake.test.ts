import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import type { HaproxyFake, SocketAddress } from 'drainable/testing/haproxy-runtime'
import { eventually } from '../../../support/eventually.js'
import { ask } from './ask.js'

const web1 = { pool: 'web', member: 'web1' }

function say(fake: HaproxyFake, line: string): Promise<string> {
  return ask(fake.socket, `${line}\n`)
}

function open(at: SocketAddress): Socket {
  const socket = typeof at === 'string' ? connect(at) : connect(at.port, at.host)
  socket.setEncoding('utf8')
  socket.on('error', () => undefined)
  return socket
}

async function heard(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [string]
  return chunk
}

describe('a failure of a line', () => {
  test('refuse: nothing done, closed without an answer, once', async () => {
    await using fake = await startFake()
    fake.fail({ how: 'refuse', match: /state drain/, times: 1 })
    expect(await say(fake, 'show version')).toContain('3.2')
    expect(await say(fake, 'set server web/web1 state drain').catch(() => '')).toBe('')
    expect(fake.adminMask(web1)).toBe(0)
    expect(await say(fake, 'set server web/web1 state drain')).toBe('\n')
    expect(fake.adminMask(web1)).toBe(8)
  })

  test('reset that executes: done, and closed without an answer', async () => {
    await using fake = await startFake()
    fake.fail({ how: 'reset', execute: true })
    expect(await say(fake, 'set server web/web1 state maint').catch(() => '')).toBe('')
    expect(fake.adminMask(web1)).toBe(1)
  })

  test('silent: nothing done, nothing answered, not closed', async () => {
    await using fake = await startFake()
    fake.fail({ how: 'silent', times: 2 })
    const asked = [open(fake.socket), open(fake.socket)]
    const seen: string[] = []
    for (const socket of asked) {
      socket.on('data', (chunk: string) => seen.push(chunk))
      socket.on('close', () => seen.push('closed'))
      socket.write('set server web/web1 state maint\n')
    }
    await eventually(() => expect(fake.requests).toHaveLength(2))
    // What came of the lines before is there when a later one is answered.
    expect(await say(fake, 'show version')).toContain('3.2')
    expect(seen).toEqual([])
    expect(fake.adminMask(web1)).toBe(0)
    for (const socket of asked) socket.destroy()
  })

  test('garbage: nothing done, an invalid answer', async () => {
    await using fake = await startFake({ master: true })
    fake.fail({ how: 'garbage', times: 2 })
    expect(await say(fake, 'show servers state')).toContain('not a reply')
    const limits = { for: 5_000, enough: /not a reply/ }
    expect(await ask(fake.master!, 'show proc\n', limits)).toContain('not a reply')
  })
})

describe('a failure of a command through the master', () => {
  const drain = '@1 set server web/web1 state drain;quit\n'

  test('is answered by HAProxy’s words for this command only', async () => {
    await using fake = await startFake({ master: true })
    fake.fail({ match: /^set server/, how: 'status' })
    expect(await ask(fake.master!, drain)).toBe('Permission denied\n\n')
    expect(fake.adminMask(web1)).toBe(0)
  })

  test('may be carried out in the process that the prefix names', async () => {
    await using fake = await startFake({ master: true })
    fake.fail({ match: /^set server/, how: 'status', body: 'No.', execute: true })
    expect(await ask(fake.master!, drain)).toBe('No.\n\n')
    expect(fake.adminMask(web1)).toBe(8)
  })
})

describe('as a process', () => {
  test('frozen, it does later what its client gave up', async () => {
    await using fake = await startFake()
    const thaw = fake.freeze()
    expect(await ask(fake.socket, 'set server web/web1 state drain\n', { for: 50 })).toBe('')
    expect(fake.adminMask(web1)).toBe(0)
    thaw()
    await expect.poll(() => fake.adminMask(web1), { interval: 5 }).toBe(8)
  })

  test('gives no answer beyond stats maxconn, until a connection ends', async () => {
    await using fake = await startFake({ maxconn: 2 })
    const held = [open(fake.socket), open(fake.socket)]
    await Promise.all(held.map((socket) => once(socket, 'connect')))
    const third = say(fake, 'show version')
    expect(await Promise.race([third, ask(fake.socket, 'show version\n', { for: 80 })])).toBe('')
    held[0]!.destroy()
    expect(await third).toContain('3.2')
    held[1]!.destroy()
  })

  test('closes a silent connection after stats timeout, which cuts a wait too', async () => {
    await using fake = await startFake({ timeout: 1_000 })
    await once(open(fake.socket).resume(), 'close')
    expect(await say(fake, 'wait 5s')).toBe('Interrupted.\n\n')
  })

  test('refuses connections, as after a crash', async () => {
    await using fake = await startFake({ master: true })
    const kept = open(fake.socket)
    await once(kept, 'connect')
    const closed = once(kept.resume(), 'close')
    const listenAgain = fake.fail({ how: 'refuse' })
    await closed
    await expect(say(fake, 'show version')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await expect(ask(fake.master!, 'show proc\n')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await listenAgain()
    expect(await say(fake, 'show version')).toContain('3.2')
  })

  test('answers on TCP as on its socket', async () => {
    await using fake = await startFake({ port: 0, master: true })
    expect(fake.socket).toMatchObject({ host: '127.0.0.1' })
    expect(await say(fake, 'show cli level')).toBe('admin\n\n')
    expect(await ask(fake.master!, 'show proc;quit\n')).toContain('# workers')
    fake.fail({ how: 'refuse' })
    await expect(say(fake, 'show version')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('leaves nothing behind', async () => {
    const fake = await startFake({ master: true })
    const { socket } = fake
    expect(existsSync(socket as string)).toBe(true)
    const kept = open(socket)
    await once(kept, 'connect')
    const closed = once(kept.resume(), 'close')
    await fake.close()
    await closed
    expect(existsSync(socket as string)).toBe(false)
    await fake.close()
  })

  test('notes every line, with the socket and the process that got it', async () => {
    await using fake = await startFake({ master: true })
    await say(fake, '  show version ')
    await ask(fake.master!, '@1 show version;quit\n')
    expect(fake.requests).toEqual([
      { line: 'show version', socket: 'stats', pid: fake.pid },
      { line: '@1 show version;quit', socket: 'master', pid: fake.pid - 1 },
    ])
    expect(fake.connections).toBe(2)
  })
})

describe('reloads', () => {
  test('forget states and added servers, the old worker keeps its work', async () => {
    await using fake = await startFake()
    await say(fake, 'set server web/web1 state drain')
    await say(fake, 'add server web/new 127.0.0.1:9')
    const end = await fake.occupy(web1)
    await fake.reload()
    expect(fake.adminMask(web1)).toBe(0)
    expect(await say(fake, 'show servers state web')).not.toContain('new')
    expect(fake.load(web1)).toBe(1)
    await end()
    expect(fake.load(web1)).toBe(0)
  })

  test('keep states where a server-state file is written', async () => {
    await using fake = await startFake({ keepsState: true })
    await say(fake, 'set server web/web1 state maint')
    await say(fake, 'set server web/web2 weight 0')
    await fake.reload()
    expect(fake.adminMask(web1)).toBe(1)
    expect(await say(fake, 'get weight web/web2')).toBe('0 (initial 1)\n\n')
  })

  test('leave an earlier connection to the old worker, and keep that alive', async () => {
    await using fake = await startFake({ master: true })
    const kept = open(fake.socket)
    kept.write('prompt i\n')
    await heard(kept)
    const old = fake.pid
    await fake.occupy(web1).then((end) => end())
    await fake.reload()
    kept.write('show info\n')
    expect(await heard(kept)).toContain(`Pid: ${old}\n`)
    expect(await ask(fake.master!, `@!${old} show info;quit\n`)).toContain('Stopping: 1\n')
    kept.destroy()
    await expect
      .poll(() => ask(fake.master!, 'show proc;quit\n'), { interval: 10 })
      .not.toContain('old workers')
  })

  test('cut what is left after hard-stop-after', async () => {
    await using fake = await startFake({ hardStopAfter: 40 })
    await fake.occupy(web1)
    await fake.reload()
    expect(fake.load(web1)).toBe(1)
    await expect.poll(() => fake.load(web1), { interval: 5 }).toBe(0)
  })
})

describe('the command wait', () => {
  test('ends when the server can be removed, or gives no reason', async () => {
    await using fake = await startFake()
    await say(fake, 'disable server web/web1')
    const end = await fake.occupy(web1)
    expect(await say(fake, 'wait 60ms srv-removable web/web1')).toBe('Wait delay expired.\n\n')
    const waiting = say(fake, 'wait 2s srv-removable web/web1;del server web/web1')
    await end()
    expect(await waiting).toBe('Done.\n\nServer deleted.\n\n')
    expect(await say(fake, 'wait 1s srv-removable web/web2')).toBe('Failed.\n\n')
  })

  test('is interrupted by a half-closed connection, and by the master', async () => {
    await using fake = await startFake({ master: true })
    const half = { halfClose: true }
    expect(await ask(fake.socket, 'wait 5s\n', half)).toBe('Interrupted.\n\n')
    expect(await ask(fake.master!, '@1 wait 5s;quit\n')).toBe('Interrupted.\n\n')
  })

  test('does not exist in 2.6', async () => {
    await using fake = await startFake({ version: '2.6' })
    expect(await say(fake, 'wait 1')).toMatch(/^Unknown command, /)
  })
})

describe('rights of a socket', () => {
  test.each([
    ['user', 'show stat', /^# pxname/],
    ['user', 'show sess', /^Permission denied\n\n$/],
    ['operator', 'show sess', /GLOBAL/],
    ['operator', 'set server web/web1 state drain', /^Permission denied\n\n$/],
    ['operator', 'clear counters all', /^Permission denied\n\n$/],
    ['admin', 'set server web/web1 state drain', /^\n$/],
  ] as const)('at level %s: %s', async (level, line, wanted) => {
    await using fake = await startFake({ level })
    expect(await say(fake, line)).toMatch(wanted)
  })
})

describe('changes by the test', () => {
  test('change, remove and return a server', async () => {
    await using fake = await startFake()
    await fake.setBehind(web1, 'maint')
    expect(fake.adminMask(web1)).toBe(1)
    await fake.setBehind(web1, 'gone')
    expect(await say(fake, 'set server web/web1 state ready')).toBe('No such server.\n\n')
    await fake.reload()
    expect(fake.adminMask(web1)).toBeUndefined()
    await fake.setBehind(web1, 'ready')
    expect(await say(fake, 'set server web/web1 state ready')).toBe('\n')
    await expect(fake.setBehind({ pool: 'nope', member: 'x' }, 'ready')).rejects.toThrow('nope')
    await expect(fake.setBehind({ pool: 'web', member: 'x' }, 'ready')).rejects.toThrow('web/x')
  })

  test('set its health', async () => {
    await using fake = await startFake({
      pools: { web: [{ name: 'web1', check: { inter: 20, rise: 2, fall: 2 } }, 'web2'] },
    })
    fake.setHealth(web1, 'down')
    expect(await say(fake, 'show stat')).toContain(',DOWN,')
    fake.setHealth(web1, 'up')
    expect(await say(fake, 'show stat')).toContain(',UP,')
    expect(() => fake.setHealth({ pool: 'web', member: 'web2' }, 'up')).toThrow('check')
  })

  test('cut one session of many by its name', async () => {
    await using fake = await startFake()
    await fake.occupy(web1)
    await fake.occupy(web1)
    const [id] = /0x\w+/.exec(await say(fake, 'show sess'))!
    expect(await say(fake, `shutdown session ${id}`)).toBe('\n')
    expect(fake.load(web1)).toBe(1)
    expect(await say(fake, `shutdown session ${id}`)).toContain('No such session')
    await say(fake, 'shutdown sessions server web/web1')
    expect(fake.load(web1)).toBe(0)
  })
})

describe('an invalid configuration of HAProxy', () => {
  test.each([
    [{ pool: {} }, /unknown option 'pool'/],
    [{ version: '1.8' }, /version/],
    [{ level: 'root' }, /level/],
    [{ pools: { 'w b': [] } }, /backend 'w b'/],
    [{ pools: { web: ['a/b'] } }, /server 'a\/b'/],
    [{ frontends: { in: { pool: 'nope' } } }, /unable to find backend 'nope'/],
    [{ pools: { web: [{ name: 'a', track: 'web/b' }] } }, /track/],
    [{ pools: { web: ['b', { name: 'a', track: 'web/b' }] } }, /does not have any checks/],
    [{ pools: { web: [{ name: 'a', to: 'nonsense' }] } }, /host:port/],
  ])('%j', async (options, message) => {
    const started = startFake(options as Parameters<typeof startFake>[0])
    await expect(started).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await expect(started).rejects.toThrow(message)
  })
})
