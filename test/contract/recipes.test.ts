/** Every recipe of the docs is run, as it stands there, on balancers in memory. */
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import {
  DrainableError,
  fileTickets,
  findOrphans,
  restore,
  startDrain,
  startRoll,
  type Ticket,
  type TicketStore,
} from 'drainable'
import type { DrainableProvider } from 'drainable'
import { fakeProvider, type FakeProvider } from 'drainable/testing'
import { startFake, type FakeOptions, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { notRun, recipe, type Loaded } from '../support/recipe-pages.js'

const web1 = { pool: 'web', member: 'web1' }

function balancer(size = 4): { lb: FakeProvider; address: string } {
  const web = Array.from({ length: size }, (_, n) => `web${n + 1}`)
  const lb = fakeProvider({ pools: { web, db: ['db1', 'db2'] } })
  return { lb, address: '10.0.0.1' }
}

async function addressOf(lb: DrainableProvider, member: string): Promise<{ address: string }> {
  const ctx = { clock: { now: () => performance.now() }, signal: new AbortController().signal }
  const { readings } = await lb.observe([{ pool: 'web', member }], ctx as never)
  const [reading] = readings
  if (reading?.present !== true || reading.address === undefined)
    throw new Error(`${member} has no address`)
  return { address: reading.address }
}

describe('the recipes of the docs', () => {
  it.concurrent('deploy to one server', async () => {
    const { lb } = balancer()
    const { call } = (await recipe('Deploy to one server: deploy')) as Loaded<
      (lb: DrainableProvider, install: () => Promise<void>) => Promise<void>
    >
    let held: string | undefined
    await call(lb, async () => void (held = lb.state(web1)))
    expect(held).toBe('maint')
    expect(lb.state(web1)).toBe('ready')
  })

  it.concurrent('tickets in SQLite, which another process reads', async () => {
    const { call, folder: place } = (await recipe(
      'Where tickets are kept: sqliteTickets',
    )) as Loaded<(file: string) => TicketStore & Disposable>
    await mkdir(place, { recursive: true })
    const file = join(place, 'tickets.db')
    using mine = call(file)
    const { lb } = balancer()
    const run = startDrain(lb, web1, { tickets: mine, id: 'job', settle: '0ms' })
    await run.done
    await run.release()
    const ticket = JSON.parse(String(await mine.get('job'))) as Ticket
    await mine.set('job', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    using theirs = call(file)
    const [orphan] = await findOrphans(theirs, lb)
    await restore(lb, orphan!.ticket, { tickets: theirs })
    expect(lb.state(web1)).toBe('ready')
    expect(await mine.get('job')).toBeUndefined()
    expect([...((await mine.keys?.()) as Iterable<string>)]).toEqual([])
  })

  it.concurrent('deploy with an action that can stop half-way', async () => {
    const { lb } = balancer()
    const { call } = (await recipe('Deploy to one server: migrate')) as Loaded<
      (lb: DrainableProvider, run: (signal: AbortSignal) => Promise<void>) => Promise<void>
    >
    let signal: AbortSignal | undefined
    await call(lb, async (given) => void (signal = given))
    expect(signal?.aborted).toBe(false)
  })

  it.concurrent('see what would happen before it happens', async () => {
    const { lb } = balancer()
    const { address } = await addressOf(lb, 'web1')
    const { call } = (await recipe('See what would happen, first: dryRun')) as Loaded<
      (lb: DrainableProvider, address: string) => Promise<boolean>
    >
    expect(await call(lb, address)).toBe(true)
    expect(lb.state(web1)).toBe('ready')
  })

  it.concurrent('see what a drain waits for', async () => {
    const { lb } = balancer()
    const end = lb.occupy(web1)
    const { call } = (await recipe('See what a drain waits for: show')) as Loaded<
      (lb: DrainableProvider) => Promise<void>
    >
    const shown = call(lb)
    await eventually(() => expect(lb.state(web1)).not.toBe('ready'))
    end()
    await shown
    expect(lb.load(web1)).toBe(0)
  })

  it.concurrent('take a machine out of every pool', async () => {
    const { lb } = balancer()
    const { address } = await addressOf(lb, 'web1')
    const { call } = (await recipe('Take a machine out of every pool: evacuate')) as Loaded<
      (lb: DrainableProvider, address: string) => Promise<boolean>
    >
    expect(await call(lb, address)).toBe(true)
    expect(lb.state(web1)).toBe('maint')
  })

  it.concurrent('roll a fleet', async () => {
    const { lb } = balancer(3)
    const { call } = (await recipe('Roll a fleet: deploy')) as Loaded<
      (lb: DrainableProvider, install: (host: string) => Promise<void>) => Promise<void>
    >
    const hosts: string[] = []
    await call(lb, async (host) => void hosts.push(host))
    expect(new Set(hosts).size).toBe(3)
  })

  it.concurrent('roll a fleet, and go on after a crash', async () => {
    const { lb } = balancer(3)
    const key = 'Roll a fleet: deployOnce'
    const { call, folder: kept } = (await recipe(key)) as Loaded<
      (lb: DrainableProvider, act: Parameters<typeof startRoll>[2]['act']) => Promise<void>
    >
    const tickets = fileTickets(kept)
    const failed = startRoll(
      lb,
      { pool: 'web' },
      { act: () => Promise.reject(new Error('exit 1')), tickets, id: 'release-42' },
    )
    expect((await failed.done).outcome).toBe('stopped')
    const attempts: number[] = []
    await call(lb, async ({ attempt }) => void attempts.push(attempt))
    expect(attempts).toEqual([2, 1, 1])
    expect(await tickets.get('release-42')).toBeUndefined()
  })

  it.concurrent('scale in', async () => {
    const { lb } = balancer()
    const { address } = await addressOf(lb, 'web1')
    const { call } = (await recipe('Scale in, with long-lived connections: scaleIn')) as Loaded<
      (lb: DrainableProvider, address: string) => Promise<string>
    >
    expect(await call(lb, address)).toBe('removed')
    expect(lb.state(web1)).toBe('gone')
  })

  it.concurrent('delete after 30 seconds', async () => {
    const { lb } = balancer()
    const { address } = await addressOf(lb, 'web1')
    const { call } = (await recipe(
      'Scale in, with long-lived connections: deleteAfter30s',
    )) as Loaded<(lb: DrainableProvider, address: string) => Promise<number>>
    expect(await call(lb, address)).toBe(0) // idle before: nothing was cut
    expect(lb.state(web1)).toBe('gone')
  })

  it.concurrent.each([
    ['undo', true, 'ready'],
    ['go on', false, 'maint'],
  ] as const)('survive a crash: %s', async (name, undo, state) => {
    const { lb } = balancer()
    const { call, folder: kept } = (await recipe(
      'Survive a crash of the process that drains: goOn',
      name,
    )) as Loaded<(lb: DrainableProvider, undo: boolean) => Promise<void>>
    await using drained = startDrain(lb, web1, {
      tickets: fileTickets(kept),
      id: 'maint-10.1.2.3',
    })
    await drained.inForce
    await drained.release()
    await call(lb, undo)
    expect(lb.state(web1)).toBe(state)
  })

  it.concurrent('a service that drains for others', async () => {
    const { lb } = balancer()
    const end = lb.occupy(web1)
    const { call } = (await recipe('A service that drains for others: drainService')) as Loaded<
      (lb: DrainableProvider) => Server
    >
    const server = call(lb).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const ask = async (method: string, path: string): Promise<unknown[]> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method })
      return [answer.status, await answer.json()]
    }
    expect(await ask('POST', '/drain/web/web9')).toMatchObject([
      404,
      { error: expect.stringContaining('web9') as string },
    ])
    expect(await ask('GET', '/status/web/web1')).toMatchObject([404, {}])
    expect(await ask('POST', '/drain/web/web1')).toEqual([202, { status: '/status/web/web1' }])
    expect(lb.state(web1)).toBe('drain')
    const busy = {
      phase: 'draining',
      idle: false,
      why: [expect.stringContaining('1 in flight') as string],
    }
    expect(await ask('GET', '/status/web/web1')).toMatchObject([200, busy])
    end()
    await eventually(async () =>
      expect(await ask('GET', '/status/web/web1')).toMatchObject([200, { idle: true }]),
    )
    expect(await ask('DELETE', '/drain/web/web1')).toMatchObject([200, {}])
    expect(lb.state(web1)).toBe('ready')
    server.close()
    server.closeAllConnections()
  })

  it.concurrent('take drains from a queue of your own', async () => {
    const { lb } = balancer()
    const { call } = (await recipe('From a queue of your own: requeue')) as Loaded<
      (
        lb: DrainableProvider,
        kept: Ticket | undefined,
        keep: (ticket: Ticket) => Promise<void>,
      ) => Promise<number | undefined>
    >
    let ticket: Ticket | undefined
    for (;;) {
      const again = await call(lb, ticket, async (one) => void (ticket = one))
      if (again === undefined) break
      await new Promise((resolve) => setTimeout(resolve, again))
    }
    expect(lb.state(web1)).toBe('maint')
  })

  it.concurrent('another process takes over what one left behind', async () => {
    const { lb } = balancer()
    const { call, folder: kept } = (await recipe('At the start of a process: takeOver')) as Loaded<
      (lb: DrainableProvider, tickets: ReturnType<typeof fileTickets>) => Promise<void>
    >
    const tickets = fileTickets(kept)
    const left = async (member: string): Promise<void> => {
      await using drained = startDrain(
        lb,
        { pool: 'web', member },
        { tickets, id: member, timeout: '1m' },
      )
      await drained.inForce
      await drained.release()
      const ticket = (await tickets.get(member)) as Ticket
      const deadline = member === 'web2' ? '2020-01-01T00:00:00.000Z' : ticket.deadline
      await tickets.set(member, {
        ...ticket,
        deadline,
        owner: { ...ticket.owner, pid: 2 ** 22 + 1 },
      })
    }
    await left('web1')
    await left('web2')
    await call(lb, tickets)
    expect(lb.state(web1)).toBe('maint')
    expect(lb.state({ pool: 'web', member: 'web2' })).toBe('ready')
  })

  it.concurrent('drain instead of sleeping', async () => {
    const { lb } = balancer()
    const { address } = await addressOf(lb, 'web1')
    const { call } = (await recipe('Step by step: insteadOfSleep')) as Loaded<
      (lb: DrainableProvider, address: string) => Promise<boolean>
    >
    expect(await call(lb, address)).toBe(true)
    expect(lb.state(web1)).toBe('maint')
  })

  it.concurrent('open a server without a check once it answers', async () => {
    const { lb } = balancer()
    await using drained = startDrain(lb, web1)
    await drained.done
    const server = createServer((_request, answer) => void answer.end('well'))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as { port: number }
    const { call } = (await recipe(
      'No health checks are configured. What now?: openWhenItAnswers',
    )) as Loaded<(lb: DrainableProvider, url: string) => Promise<void>>
    await call(lb, `http://127.0.0.1:${port}/`)
    server.closeAllConnections()
    server.close()
    expect(lb.state(web1)).toBe('ready')
  })

  it('list every server', async () => {
    const { lb } = balancer()
    lb.occupy(web1, 3)
    const { call } = (await recipe('Can I list everything?: table')) as Loaded<
      (lb: DrainableProvider) => Promise<void>
    >
    await call(lb)
    expect(console.log).toHaveBeenCalledWith('web', 'web1', 'ready', 'up', 3)
  })

  describe('inside a preStop hook', () => {
    const web = [1, 2].map((n) => ({ name: `web${n}`, address: `10.0.0.${n}`, port: 80 }))

    const onTcp = { pools: { web }, port: 0 }

    /** Runs the hook of web1 against a HAProxy; what it printed. */
    async function stopping(
      options: FakeOptions,
      prepare: (fake: HaproxyFake) => unknown,
      graceSeconds = '13',
    ) {
      const said: unknown[] = []
      const errors = vi
        .spyOn(console, 'error')
        .mockImplementation((...words: unknown[]) => void said.push(...words))
      const fake = await startFake({ ...options, master: true })
      const at = (address: typeof fake.socket = ''): string =>
        typeof address === 'object' ? `${address.host}:${address.port}` : address
      vi.stubEnv('POD_IP', '10.0.0.1')
      vi.stubEnv('GRACE_SECONDS', graceSeconds)
      vi.stubEnv('HAPROXY', at(fake.socket))
      vi.stubEnv('HAPROXY_MASTER', at(fake.master))
      await prepare(fake)
      const { call } = await recipe(
        'Inside a preStop hook: script',
        expect.getState().currentTestName,
      )
      await (call as () => Promise<unknown>)()
      const mask = await Promise.resolve(fake.adminMask(web1)).catch(() => undefined)
      await fake[Symbol.asyncDispose]()
      errors.mockRestore()
      vi.unstubAllEnvs()
      return { said: said.join(' '), mask }
    }

    it('drains the pod', async () => {
      // It ends when the pod is idle, however long a loaded machine takes for that.
      const { said, mask } = await stopping(onTcp, () => undefined, '60')
      expect(said).toBe('')
      expect(mask).not.toBe(0)
    })

    it('says what is left', async () => {
      const { said, mask } = await stopping(onTcp, (fake) => fake.occupy(web1))
      expect(said).toMatch(/^web: .*1 in flight/)
      expect(mask).not.toBe(0)
    })

    it('does not drain the only replica', async () => {
      const { said, mask } = await stopping(
        { ...onTcp, pools: { web: web.slice(0, 1) } },
        () => undefined,
      )
      expect(said).toContain('keepReady')
      expect(mask).toBe(0)
    })

    it('ends by itself if no HAProxy is there', async () => {
      // On a socket of its own, as below.
      const { said } = await stopping({ pools: { web } }, (fake) => fake[Symbol.asyncDispose]())
      expect(said).toMatch(/^\*: .*no such socket, is HAProxy running/)
    })

    it('waits for a HAProxy that is away when the pod ends', async () => {
      // On a socket of its own: a port that nothing listens on is anybody's.
      const away = async (fake: HaproxyFake): Promise<void> => {
        const back = fake.fail({ how: 'refuse' })
        setTimeout(() => void back(), 2_500)
      }
      const { said, mask } = await stopping({ pools: { web } }, away, '60')
      expect(said).toBe('')
      expect(mask).not.toBe(0)
    })
  })

  describe('a roll at a terminal', () => {
    type Install = (address: string, signal: AbortSignal) => Promise<void>

    /** What it prints, its exit code, and the state of each server. */
    async function rolled(lb: FakeProvider, install: Install) {
      const said: string[] = []
      const hear = (...words: unknown[]): void => void said.push(words.join(' '))
      vi.mocked(console.log).mockImplementation(hear)
      const errors = vi.spyOn(console, 'error').mockImplementation(hear)
      const { call } = await recipe('Roll a fleet at a terminal: rollAtATerminal')
      const code = await (call as (lb: FakeProvider, install: Install) => Promise<number>)(
        lb,
        install,
      )
      errors.mockRestore()
      vi.mocked(console.log).mockImplementation(() => undefined)
      const states = ['web1', 'web2', 'web3'].map((member) => lb.state({ pool: 'web', member }))
      return { said, code, states }
    }

    it('ends with 0 once every server is done', async () => {
      const { lb } = balancer(3)
      const { said, code, states } = await rolled(lb, () => Promise.resolve())
      expect(code).toBe(0)
      expect(states).toEqual(['ready', 'ready', 'ready'])
      expect(said).toContain('web1: healthy again')
      expect(said.at(-1)).toBe('done: 3 of 3 servers are done')
    })

    it('names on Ctrl-C what is left drained, and what a second roll leaves out', async () => {
      const { lb } = balancer(3)
      const first = await rolled(lb, async (_, signal) => {
        process.emit('SIGINT')
        signal.throwIfAborted()
      })
      expect(first.code).toBe(1)
      expect(first.states).toEqual(['maint', 'ready', 'ready'])
      expect(first.said.at(-1)).toBe('left drained, ready() opens them: web/web1')
      const second = await rolled(lb, () => Promise.resolve())
      expect(second.code).toBe(0)
      expect(second.states).toEqual(['maint', 'ready', 'ready'])
      expect(second.said.at(-1)).toBe('still out, as they were before: web/web1')
    })
  })

  describe('Ctrl-C', () => {
    type Work = (signal: AbortSignal) => Promise<void>
    let said: unknown[][]

    beforeEach(() => {
      said = []
      vi.spyOn(console, 'error').mockImplementation((...words: unknown[]) => void said.push(words))
    })
    afterEach(() => {
      vi.mocked(console.error).mockRestore()
    })

    async function atATerminal(lb: DrainableProvider, work: Work): Promise<void> {
      const { call } = await recipe('Ctrl-C puts it back: atATerminal')
      return (call as (lb: DrainableProvider, work: Work) => Promise<void>)(lb, work)
    }

    it('during the action stops the action', async () => {
      const { lb } = balancer()
      const working = atATerminal(lb, (signal) => {
        const stopped = new Promise<void>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        })
        process.emit('SIGINT')
        return stopped
      })
      await expect(working).rejects.toThrow('stopped by Ctrl-C')
      expect(lb.state(web1)).toBe('maint')
      expect(said).toEqual([['web1 is maint', '(the work had begun: ready() opens it)']])
    })

    it('puts the server back', async () => {
      const { lb } = balancer()
      const end = lb.occupy(web1)
      const working = atATerminal(lb, () => Promise.resolve())
      await eventually(() => expect(lb.state(web1)).toBe('drain'))
      process.emit('SIGINT')
      await expect(working).rejects.toThrow('stopped by Ctrl-C')
      expect(lb.state(web1)).toBe('ready')
      expect(said).toEqual([['web1 is ready', '']])
      end()
    })
  })

  describe('a server that takes itself out', () => {
    /** Ends with the state of the member when the server was closed, and what its `close` was told. */
    async function stopped(prepare: (lb: FakeProvider) => void): Promise<[string, boolean]> {
      const { lb } = balancer()
      const { address } = await addressOf(lb, 'web1')
      const { call } = (await recipe('A server that takes itself out: closeWhenIdle')) as Loaded<
        (lb: DrainableProvider, self: object, close: (idle: boolean) => Promise<void>) => void
      >
      const closed = Promise.withResolvers<[string, boolean]>()
      call(lb, { address, port: 80 }, async (idle) => closed.resolve([lb.state(web1), idle]))
      prepare(lb)
      process.emit('SIGTERM')
      const told = await closed.promise
      // The provider is closed too: nothing of it keeps the process alive.
      await expect
        .poll(() => addressOf(lb, 'web1').catch((e: unknown) => e))
        .toMatchObject({ code: 'CONNECTION_LOST' })
      return told
    }

    it('closes when it is idle', async () => {
      expect(await stopped(() => undefined)).toEqual(['maint', true])
    })

    it('closes without the balancer when the balancer refuses', async () => {
      const error = new DrainableError('UNAUTHENTICATED', 'the login is refused')
      const said = vi.spyOn(console, 'error').mockImplementation(() => undefined)
      const without = stopped((lb) => lb.failNext('throw', { error, times: 100 }))
      expect(await without).toEqual(['ready', false])
      expect(said).toHaveBeenCalledWith('closing without the balancer:', error)
    })
  })

  it.concurrent('read a timeout from the environment', async () => {
    const { call } = (await recipe(
      'How do I take a timeout from the environment?: policyOf',
    )) as Loaded<(env: object) => object>
    expect(call({ DRAIN_TIMEOUT: '90s' })).toEqual({ timeout: '90s' })
    expect(call({})).toEqual({ timeout: '2m' })
    expect(() => call({ DRAIN_TIMEOUT: '30' })).toThrow(/^DRAIN_TIMEOUT is '30', expected .* '30s'/)
  })

  it.concurrent('watch drains begun by any client', async () => {
    const { lb } = balancer()
    const stop = new AbortController()
    const { call } = (await recipe('Watch drains begun by any client: follow')) as Loaded<
      (lb: DrainableProvider, signal: AbortSignal) => Promise<void>
    >
    const said: unknown[][] = []
    vi.mocked(console.log).mockImplementation((...words: unknown[]) => void said.push(words))
    const following = call(lb, stop.signal)
    lb.setBehind(web1, 'drain')
    await eventually(() => expect(said).toContainEqual(['web1', 'draining']))
    await eventually(() => expect(said.flat().join()).toMatch(/web\/web1: 0 in flight/))
    stop.abort()
    await following.catch(() => undefined)
    expect(lb.state(web1)).toBe('drain')
  })
})

afterAll(() => {
  expect(notRun()).toEqual([])
})
