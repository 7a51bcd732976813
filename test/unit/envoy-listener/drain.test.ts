import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { drain, ready, startDrain, watch } from 'drainable'
import { envoyListener } from 'drainable/envoy-listener'
import { startFake, type EnvoyListenerFake } from 'drainable/testing/envoy-listener'
import { eventually } from '../../support/eventually.js'

const TARGET = { pool: 'envoy' }
const POLICY = { timeout: '50s', keepReady: 0, settle: '100ms' } as const

function posts(fake: EnvoyListenerFake): string[] {
  return fake.requests.flatMap(({ line }) => (line.startsWith('POST ') ? [line] : []))
}

describe('a drain', () => {
  test('counts requests, WebSockets and TCP, but no idle clients', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url })
    fake.connect('idle')
    fake.connect('idle')
    const ends = [await fake.occupy(), later(fake.connect('upgrade')), later(fake.connect('tcp'))]
    const run = startDrain(lb, TARGET, POLICY)
    await until(() => run.report().members[0]?.lastReading?.scopes[0]?.active === 3)
    await until(() =>
      run
        .why()
        .some(
          ({ text }) => text === '2 requests of http.in, 1 of them WebSockets or other upgrades',
        ),
    )
    await until(() => run.report().members[0]?.phase === 'draining')
    for (const end of ends) {
      expect(run.report().members[0]?.phase).toBe('draining')
      await end()
    }
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(report.members[0]?.lastReading?.scopes[0]).toMatchObject({ pooled: 2 })
    await run.close()
  })

  test('does not count health checks of the balancer in front as arrivals', async () => {
    await using fake = await startFake({ checkInterval: 5 })
    await using lb = envoyListener({ admin: fake.url, noticed: { checks: 3 } })
    const report = await drain(lb, TARGET, { ...POLICY, settle: '300ms' })
    expect(report.members[0]?.proof?.arrivals).toBe('unchanged')
  })

  test('is undone by ready, and by restore', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url })
    await drain(lb, TARGET, POLICY)
    expect(fake.failing).toBe(true)
    await ready(lb, TARGET)
    expect(fake.failing).toBe(false)
    const run = startDrain(lb, TARGET, POLICY)
    await run.done
    await run.restore()
    expect(fake.failing).toBe(false)
    expect(posts(fake).map((line) => line.slice('POST /healthcheck/'.length))).toEqual([
      'fail',
      'ok',
      'fail',
      'ok',
    ])
  })

  test('works over a Unix socket, whose path names the member', async () => {
    const socket = `/tmp/drainable-${process.pid}-${Math.random().toString(36).slice(2)}.sock`
    await using fake = await startFake({ socket })
    await using lb = envoyListener({ admin: `unix:${socket}`, pool: 'edge' })
    const report = await drain(lb, { pool: 'edge', member: socket }, POLICY)
    expect(report.outcome).toBe('idle')
    expect(fake.failing).toBe(true)
  })

  test('sends drainListeners and quit on the caller’s word only', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url })
    await drain(lb, TARGET, POLICY, async () => {
      expect(fake.told).toEqual({ drain: false, quit: false })
      await lb.drainListeners()
      await lb.quit({ pool: 'envoy', member: fake.member })
    })
    expect(posts(fake).slice(-2)).toEqual(['POST /drain_listeners?graceful', 'POST /quitquitquit'])
    expect(fake.told).toEqual({ drain: true, quit: true })
  })

  test('never tells a member to quit that is not listed', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url })
    await expect(lb.quit({ pool: 'envoy', member: '10.0.0.9:9901' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(posts(fake)).toEqual([])
  })
})

describe('the balancer in front', () => {
  test('has noticed nothing without health checks, so idle is not said', async () => {
    await using fake = await startFake({ checkInterval: 0 })
    await using lb = envoyListener({ admin: fake.url, noticed: { checks: 2 } })
    const run = startDrain(lb, TARGET, POLICY)
    await until(() => run.why().some(({ text }) => text.includes('0 of 2 failed health checks')))
    expect(run.report().members[0]?.phase).not.toBe('idle')
    await run.close()
  })

  test('needs no checks with noticed.after', async () => {
    await using fake = await startFake({ checkInterval: 0 })
    await using lb = envoyListener({ admin: fake.url, noticed: { after: '50ms' } })
    expect((await drain(lb, TARGET, POLICY)).outcome).toBe('idle')
  })

  test('is not judged by checks that failed before this drain', async () => {
    await using fake = await startFake({ checkInterval: 0 })
    const ref = { pool: 'envoy', member: fake.member }
    await fake.setBehind(ref, 'drain')
    for (let i = 0; i < 5; i += 1) expect(fake.check()).toBe(false)
    await using lb = envoyListener({ admin: fake.url, noticed: { checks: 2 } })
    const run = startDrain(lb, ref, POLICY)
    const seen = (n: number) =>
      until(() => run.why().some(({ text }) => text.includes(`${n} of 2`)))
    await seen(0)
    fake.check()
    await seen(1)
    fake.check()
    expect((await run.done).outcome).toBe('idle')
    await run.close()
  })
})

describe('refused before any change is', () => {
  test('a proxy without the health check filter', async () => {
    await using fake = await startFake({ healthCheck: false })
    await using lb = envoyListener({ admin: fake.url })
    await expect(drain(lb, TARGET, POLICY)).rejects.toThrow(
      /no health check filter.*probe: 'ready'/,
    )
    expect(posts(fake)).toEqual([])
  })

  test('but not if /ready of the admin API is probed', async () => {
    await using fake = await startFake({ healthCheck: false })
    await using lb = envoyListener({ admin: fake.url, probe: 'ready', noticed: { after: '10ms' } })
    expect((await drain(lb, TARGET, POLICY)).outcome).toBe('idle')
  })

  test.each(['/server_info', '/stats', '/config_dump', '/healthcheck/fail', '/healthcheck/ok'])(
    'allow_paths without %s',
    async (missing) => {
      const all = ['/server_info', '/stats', '/config_dump', '/healthcheck/fail', '/healthcheck/ok']
      await using fake = await startFake({ allowPaths: all.filter((path) => path !== missing) })
      await using lb = envoyListener({ admin: fake.url })
      await expect(drain(lb, TARGET, POLICY)).rejects.toThrow(
        `admin.allow_paths must allow ${all.join(', ')}`,
      )
      expect(posts(fake)).toEqual([])
    },
  )

  test.each([
    ['a page', 'Welcome to nginx!'],
    ['JSON', '{"version": "1.2.3"}'],
  ])('an admin address of another service: %s', async (_, text) => {
    const lines: string[] = []
    const server = createServer((req, res) => {
      lines.push(`${req.method ?? ''} ${req.url ?? ''}`)
      res.end(text)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      await using lb = envoyListener({ admin: `http://127.0.0.1:${port}` })
      await expect(drain(lb, TARGET, POLICY)).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
      await expect(lb.quit()).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
      expect(lines.filter((line) => line.startsWith('POST'))).toEqual([])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test.each([
    [{ admin: 'ftp://x' }, /admin/],
    [{ admin: [] }, /at least one address/],
    [{ admin: 'http://127.0.0.1:1', noticed: { checks: 0 } }, /noticed/],
    [{ admin: 'http://127.0.0.1:1', noticed: { after: 10 } }, /did you mean '10s'/],
    [{ admin: 'http://127.0.0.1:1', noticed: 3 as never }, /expected \{ checks: 3 \}/],
    [{ admin: 'http://127.0.0.1:1', drainTime: '3s' } as never, /unknown option 'drainTime'/],
  ])('options %j', (options, words) => {
    expect(() => envoyListener(options)).toThrow(words)
  })
})

describe('idle is never said while a response is in a buffer', () => {
  test('of a client that reads slowly', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url })
    const end = fake.connect('slow')
    const run = startDrain(lb, TARGET, POLICY)
    await until(() => run.why().some(({ text }) => text.includes('not sent yet')))
    expect(run.report().members[0]?.phase).not.toBe('idle')
    end()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })
})

describe('idle is never said if something can not be read', () => {
  test('such as hidden statistics', async () => {
    await using fake = await startFake({ hiddenStats: [/downstream_rq_active/] })
    await using lb = envoyListener({ admin: fake.url })
    const run = startDrain(lb, TARGET, POLICY)
    await until(() => run.why().some(({ text }) => text.includes('stats_matcher')))
    expect(run.report().members[0]?.phase).not.toBe('idle')
    await run.close()
  })

  test('such as connections behind an ignored HTTP listener', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url, ignore: ['0.0.0.0_8080'] })
    fake.connect('idle')
    const run = startDrain(lb, TARGET, POLICY)
    await until(() => run.why().some(({ text }) => text.includes('not its listener')))
    expect(run.report().members[0]?.phase).not.toBe('idle')
    await run.close()
  })

  test('such as an admin API that is gone in mid-drain, until it is back', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url })
    const end = await fake.occupy()
    const run = startDrain(lb, TARGET, POLICY)
    await until(() => fake.failing)
    const back = fake.fail({ how: 'refuse' })
    await end()
    await until(() => run.why().some(({ code }) => code === 'unreadable'))
    expect(run.report().members[0]?.phase).not.toBe('idle')
    await back()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })

  test('such as the process before a hot restart; its child is failed again', async () => {
    await using fake = await startFake({ statsFlush: 1 })
    await using lb = envoyListener({ admin: fake.url })
    const end = fake.connect('upgrade')
    const run = startDrain(lb, TARGET, { ...POLICY, timeout: '40s' })
    await until(() => fake.failing)
    fake.hotRestart()
    expect(fake.failing).toBe(false)
    await until(() => fake.failing)
    const old = `${fake.member} before its hot restart`
    await until(() => run.why().some(({ scope }) => scope === old))
    end()
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
    await run.close()
  })

  test('and what was cut with the process before a hot restart is lost', async () => {
    await using fake = await startFake({ statsFlush: 1, parentShutdown: 4_000 })
    await using lb = envoyListener({ admin: fake.url })
    fake.connect('upgrade')
    fake.hotRestart()
    const run = startDrain(lb, TARGET, { ...POLICY, timeout: '40s' })
    const old = `${fake.member} before its hot restart`
    await until(() => run.why().some(({ scope, count }) => scope === old && count === 1))
    const report = await run.done
    expect(report.members[0]?.verifiedIdle).toBe(false)
    expect(report.members[0]?.lost).toMatchObject([{ scope: old, active: 1 }])
    await run.close()
  })
})

test('watch sees a drain that another client began', async () => {
  await using fake = await startFake()
  await using lb = envoyListener({ admin: fake.url })
  await using run = watch(lb, TARGET, { settle: '100ms' })
  await fake.setBehind({ pool: 'envoy', member: fake.member }, 'drain')
  await until(() => run.report().members[0]?.phase === 'idle')
  expect(posts(fake)).toEqual([])
})

function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  return eventually(async () => {
    expect(await holds()).toBe(true)
  })
}

function later(end: () => void): () => Promise<void> {
  return () => {
    end()
    return Promise.resolve()
  }
}

describe('closed listeners', () => {
  test('are waited for no failed check, and no client behind them is a seal', async () => {
    await using fake = await startFake({ checkInterval: 0, drainTime: 0 })
    await using lb = envoyListener({ admin: fake.url, noticed: { checks: 3 } })
    const client = fake.connect('idle')
    await lb.drainListeners()
    const first = await drain(lb, TARGET, POLICY)
    expect(first.members[0]).toMatchObject({ verifiedIdle: true, sealed: false })
    client()
    const second = await drain(lb, TARGET, POLICY)
    expect(second.members[0]).toMatchObject({ verifiedIdle: true, sealed: true })
    expect(() => fake.connect('tcp')).toThrow('ECONNREFUSED')
  })

  test('of a parent say nothing of its child', async () => {
    await using fake = await startFake({ checkInterval: 0, drainTime: 0 })
    await using lb = envoyListener({ admin: fake.url, noticed: { checks: 3 } })
    await lb.drainListeners()
    fake.hotRestart()
    const run = startDrain(lb, TARGET, POLICY)
    await expect
      .poll(() =>
        run
          .why()
          .map(({ text }) => text)
          .join(),
      )
      .toContain('0 of 3 failed health checks')
    await run.close()
  })
})

describe('failAfter', () => {
  test('is the least that a drain takes', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url, failAfter: '60s' })
    await expect(drain(lb, TARGET, { ...POLICY, timeout: '30s' })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    expect(fake.failing).toBe(false)
  })

  test('given up in its time changes nothing', async () => {
    await using fake = await startFake()
    await using lb = envoyListener({ admin: fake.url, failAfter: '20s' })
    const abort = new AbortController()
    const run = startDrain(lb, TARGET, { ...POLICY, timeout: '60s', signal: abort.signal })
    const isAsked = () => fake.requests.some(({ line }) => line.startsWith('GET /healthcheck/ok'))
    await expect.poll(isAsked).toBe(true)
    abort.abort()
    await run.done.catch(() => undefined)
    expect(fake.failing).toBe(false)
    expect(posts(fake)).toEqual([])
    await run.close()
  })
})
