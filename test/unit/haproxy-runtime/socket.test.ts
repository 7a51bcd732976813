import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fakeClock } from 'drainable/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Address } from '../../../src/adapters/haproxy-runtime/codec/address.js'
import { StatsChannel } from '../../../src/adapters/haproxy-runtime/session/channel.js'
import { Stay } from '../../../src/adapters/haproxy-runtime/session/process.js'
import { MasterSocket } from '../../../src/adapters/haproxy-runtime/session/master.js'
import { RuntimeSocket, socketError } from '../../../src/adapters/haproxy-runtime/session/socket.js'
import { systemClock, type Clock } from '../../../src/provider/clock.js'

const within = (signal: AbortSignal, clock: Clock = systemClock) => ({ clock, signal })
const LIMITS = { connectTimeout: 10_000, replyTimeout: 30_000, maxConnections: 2 }
const forever = within(new AbortController().signal)

let folder: string
let path: string
let server: Server
const sockets = new Set<Socket>()

function at(where: string): Address {
  return { to: { path: where }, label: `unix:${where}`, local: true }
}

/** Serves every connection with `serve`. */
async function listen(serve: (socket: Socket, line: string) => void): Promise<void> {
  server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) serve(socket, line)
    })
  })
  server.listen(path)
  await once(server, 'listening')
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drainable-'))
  path = join(folder, 's')
})

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  server.close()
  await once(server, 'close')
  rmSync(folder, { recursive: true, force: true })
})

function code(expected: string): unknown {
  return expect.objectContaining({ code: expected })
}

describe('a line on a connection of its own', () => {
  it('reads to the close, in any pieces', async () => {
    await listen((socket, line) => {
      for (const byte of Buffer.from(`${line}: grüße\n\n`)) socket.write(Buffer.from([byte]))
      socket.end()
    })
    expect(await new RuntimeSocket(at(path), LIMITS).exchange('show version', forever)).toBe(
      'show version: grüße\n\n',
    )
  })

  it('tells no answer, a truncated answer and a close apart', async () => {
    const said: string[] = []
    await listen((socket, line) => {
      said.push(line)
      if (line === 'half') socket.write('# pxname')
      if (line === 'close') socket.end()
    })
    const socket = new RuntimeSocket(at(path), LIMITS)
    const clock = fakeClock()
    const standing = within(forever.signal, clock)
    const silent = socket.exchange('silent', standing)
    silent.catch(() => undefined)
    await expect.poll(() => said).toContain('silent')
    await clock.advance(LIMITS.replyTimeout)
    await expect(silent).rejects.toEqual(code('CALL_TIMEOUT'))
    let read = ''
    const half = socket.exchange('half', standing, (text) => {
      read = text
      return false
    })
    half.catch(() => undefined)
    await expect.poll(() => read).toBe('# pxname')
    await clock.advance(LIMITS.replyTimeout)
    await expect(half).rejects.toThrow(/not complete within/)
    await expect(socket.exchange('close', standing)).rejects.toEqual(code('CONNECTION_LOST'))
  })

  it('ends a dribbling answer when its whole time is over', async () => {
    await listen((socket) => {
      const drip = setInterval(() => socket.write('x'), 20)
      socket.on('close', () => clearInterval(drip))
    })
    const socket = new RuntimeSocket(at(path), { ...LIMITS, replyTimeout: 1_000 })
    await expect(socket.exchange('slowly', forever)).rejects.toEqual(code('CALL_TIMEOUT'))
  })

  it('rejects an abort at once with its reason, and leaves no socket', async () => {
    await listen(() => undefined)
    const socket = new RuntimeSocket(at(path), LIMITS)
    const stop = new AbortController()
    const reason = new Error('enough')
    const calls = [1, 2, 3].map(() => socket.exchange('silent', within(stop.signal))) // the third waits for a slot
    while (sockets.size < 2) await new Promise((resolve) => setImmediate(resolve))
    stop.abort(reason)
    for (const call of calls) await expect(call).rejects.toBe(reason)
    while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve))
    await expect(socket.exchange('silent', within(stop.signal))).rejects.toBe(reason)
  })

  it('never opens more connections than allowed, and serves all', async () => {
    let open = 0
    let most = 0
    await listen((socket, line) => {
      most = Math.max(most, ++open)
      setTimeout(() => {
        // The client may see the end, and connect again, before this side has seen the close.
        open -= 1
        socket.end(`${line}\n\n`)
      }, 5)
    })
    const socket = new RuntimeSocket(at(path), LIMITS)
    const lines = Array.from({ length: 12 }, (_, index) => `n${index}`)
    const replies = await Promise.all(lines.map((line) => socket.exchange(line, forever)))
    expect(replies).toEqual(lines.map((line) => `${line}\n\n`))
    expect(most).toBe(LIMITS.maxConnections)
  })

  it('opens no connection after its close', async () => {
    await listen(() => undefined)
    const socket = new RuntimeSocket(at(path), LIMITS)
    const call = socket.exchange('silent', forever)
    call.catch(() => undefined)
    while (sockets.size < 1) await new Promise((resolve) => setImmediate(resolve))
    socket.close()
    await expect(call).rejects.toThrow(/was closed/)
    await expect(socket.exchange('again', forever)).rejects.toThrow(/was closed/)
  })
})

describe('channels', () => {
  const info = (pid: number): string =>
    `Version: 3.2.1\nPid: ${pid}\nnode: n\nStart_time_sec: 1\n\n`

  it('notices another process in the connection that counted', async () => {
    let pid = 1
    await listen((socket, line) => {
      const replies = line.split(';').map((command) => {
        return command === 'show info float' ? info(pid) : `${command}\n\n`
      })
      socket.end(replies.join(''))
    })
    const stats = new StatsChannel(new RuntimeSocket(at(path), LIMITS))
    expect(await stats.to('n/1/1').run(['a', 'b'], forever)).toMatchObject({
      replies: ['a', 'b'],
    })
    expect(await stats.change('set server x', 'n/1/1', forever)).toBe('set server x')
    pid = 2
    const other = expect.objectContaining({ name: 'AnotherProcess' }) as unknown
    await expect(stats.to('n/1/1').run(['a'], forever)).rejects.toEqual(other)
    await expect(stats.change('set server x', 'n/1/1', forever)).rejects.toEqual(other)
  })

  it('halve a line that is too long until it fits', async () => {
    const lengths: number[] = []
    await listen((socket, line) => {
      lengths.push(line.length)
      if (line.length > 2_000) {
        socket.end('The command line is too big for the buffer size. Please chan\n\n')
        return
      }
      const replies = line.split(';').map((command) => {
        return command === 'show info float' ? info(1) : `${command}\n\n`
      })
      socket.end(replies.join(''))
    })
    const stats = new StatsChannel(new RuntimeSocket(at(path), LIMITS))
    const commands = Array.from({ length: 400 }, (_, index) => `show stat 3 4 ${index}`)
    expect(await stats.to('n/1/1').run(commands, forever)).toMatchObject({ replies: commands })
    const before = lengths.length
    await stats.to('n/1/1').run(commands, forever)
    expect(lengths.slice(before).every((length) => length <= 2_000)).toBe(true)
  })

  it('end with their worker, though the master stays (3.x)', async () => {
    await listen((socket) => {
      socket.write("Can't find the target PID matching the prefix '@!7'\n")
    })
    const master = new MasterSocket(new RuntimeSocket(at(path), LIMITS))
    const gone = expect.objectContaining({ name: 'WorkerGone' }) as unknown
    await expect(master.to(7, undefined).run(['a'], forever)).rejects.toEqual(gone)
  })
})

describe('a connection that stays with its process', () => {
  /** The reply to its first line, cut into two pieces. */
  const GREETING = [
    '\n> \n> Name: HAProxy\nVersion: 3.0\nPid: 7\nnode: n\nUptime_se',
    'c: 1.5\n\n> ',
  ]

  it('tells which process it leads to, and when that has ended', async () => {
    await listen((socket, line) => {
      if (line.startsWith('prompt;')) for (const piece of GREETING) socket.write(piece)
    })
    const { stay, info } = await Stay.open(new RuntimeSocket(at(path), LIMITS), forever)
    expect(info).toMatchObject({ pid: 7, lived: 1_500 })
    expect(stay.state).toBe('open')
    for (const socket of sockets) socket.end()
    await vi.waitFor(() => expect(stay.state).toBe('ended'))
  })

  it('leaves no socket behind if the process does not answer', async () => {
    await listen(() => undefined)
    const clock = fakeClock()
    const opened = Stay.open(new RuntimeSocket(at(path), LIMITS), within(forever.signal, clock))
    opened.catch(() => undefined)
    await vi.waitFor(() => expect(sockets.size).toBe(1))
    await clock.advance(LIMITS.replyTimeout)
    await expect(opened).rejects.toEqual(code('CALL_TIMEOUT'))
    await vi.waitFor(() => expect(sockets.size).toBe(0))
  })
})

describe('a connection error of the system', () => {
  it.each([
    ['ENOENT', 'UNREACHABLE', 'no such socket'],
    ['ECONNREFUSED', 'UNREACHABLE', 'nothing listens there'],
    ['EAGAIN', 'UNREACHABLE', "'stats maxconn'"],
    ['EACCES', 'FORBIDDEN', 'is not allowed to open the socket'],
  ])('%s is %s', (system, expected, words) => {
    const cause = Object.assign(new Error(`connect ${system}`), { code: system })
    const error = socketError('unix:/run/s', cause, false)
    expect(error).toEqual(code(expected))
    expect(error.message).toContain(words)
  })

  it.each(['ENOENT', 'ECONNREFUSED', 'EACCES'])('%s names the master socket', (system) => {
    const cause = Object.assign(new Error(`connect ${system}`), { code: system })
    const { message } = socketError('unix:/run/m', cause, false, 'master')
    expect(message).toContain('haproxy -S')
    expect(message).not.toContain('stats socket')
  })
})
