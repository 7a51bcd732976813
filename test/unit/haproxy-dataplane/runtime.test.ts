import { startDrain } from 'drainable'
import type { DrainableProvider, LoadScope, Snapshot } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { parseProcessInfo } from '../../../src/adapters/haproxy-dataplane/codec/replies.js'
import { connect, context, present, warm } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** What the Runtime API shows, changed by the test. */
function eyes(change: (seen: Snapshot, now: number) => Snapshot): DrainableProvider {
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
  return {
    specVersion: 1,
    name: 'haproxy-runtime',
    instance: 'unix:/run/haproxy/admin.sock',
    describe: (ctx) => lb.describe(ctx),
    observe: async (refs, ctx) => {
      const seen = await lb.observe(refs, ctx)
      const readings = seen.readings.map((one) =>
        one.present
          ? { ...one, address: '127.0.0.1', port: one.ref.member === 'web1' ? 8001 : 8002 }
          : one,
      )
      return change({ ...seen, readings }, ctx.clock.now())
    },
    apply: () => Promise.reject(new Error('the eyes change nothing')),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

const scopeOf = (scope: string, now: number, more: Partial<LoadScope>): LoadScope => ({
  scope,
  incarnation: scope,
  state: 'read',
  sampledAt: now,
  active: 0,
  queued: 0,
  arrivals: 1,
  ...more,
})

/** One process, and beside it another one that a reload replaced, for as long as that is busy. */
const withOld = (busy: () => boolean) =>
  eyes((seen, now) => ({
    ...seen,
    ended: 'unlisted',
    readings: seen.readings.map((one) => ({
      ...one,
      scopes: [
        scopeOf('process 2', now, {}),
        ...(busy() ? [scopeOf('process 1', now, { active: 1, old: true, open: false })] : []),
      ],
    })),
  }))

async function processOf(fake: DataplaneFake) {
  const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`
  const reply = await fetch(`${fake.url}/v3/services/haproxy/runtime/info`, {
    headers: { authorization },
  })
  return parseProcessInfo(await reply.text())
}

describe('proof by the Runtime API', () => {
  test('waits for an earlier process, and is then verified', async () => {
    await using fake = await startFake()
    let busy = true
    await using lb = connect(fake, { runtime: withOld(() => busy), maintCuts: false })
    await warm(fake)
    using clock = ioClock()
    const run = startDrain(lb, WEB1, { timeout: '10m', clock })
    const seconds = (n: number): Promise<void> =>
      clock.run(new Promise((resolve) => clock.setTimeout(resolve, n * 1_000)))
    for (let i = 0; i < 60 && run.why()[0]?.scope !== 'process 1'; i += 1) await seconds(1)
    await seconds(5)
    expect(run.report().outcome).not.toBe('idle')
    expect(JSON.stringify(run.why())).toContain('process 1')
    busy = false
    expect((await clock.run(run.done)).members[0]).toMatchObject({ outcome: 'idle' })
    expect((await present(lb, WEB1)).unverified).toBeUndefined()
    await run.release()
  })

  test('tells in its words what it can not see', async () => {
    await using fake = await startFake({ uptime: 1_000_000 })
    const unverified = 'the master was not asked'
    const runtime = eyes((seen) => ({
      ...seen,
      readings: seen.readings.map((one) => ({ ...one, unverified })),
    }))
    await using lb = connect(fake, { runtime })
    expect((await present(lb, WEB1)).unverified).toBe(unverified)
  })

  test.each<[string, boolean, (seen: Snapshot) => Snapshot]>([
    ['another address', false, (seen) => moved(seen, { port: 9_000 })],
    ['no such server', true, (seen) => ({ ...seen, readings: gone(seen) })],
    ['no answer', true, (seen) => ({ ...seen, readings: [] })],
  ])('is not taken from another HAProxy: %s', async (_what, retryable, change) => {
    await using fake = await startFake()
    await using lb = connect(fake, { runtime: eyes(change) })
    const look = lb.observe([WEB1], context())
    await expect(look).rejects.toMatchObject({ code: 'CONFLICT', retryable })
    await expect(look).rejects.toThrow('must be the same HAProxy')
  })

  // A reload between the two looks: the drain of the process before, beside the counts of the next one.
  test.each([
    [1, 'is looked at again'],
    [9, 'is no look'],
  ])('with another process in %d looks %s', async (times) => {
    await using fake = await startFake()
    const info = await processOf(fake)
    let left = times
    const runtime = eyes((seen, now) => {
      left -= 1
      const pid = left < 0 ? info.pid : info.pid + 7
      const scopes = [
        scopeOf(`process ${pid}`, now, { incarnation: `${info.node}/${pid}/1795386532` }),
      ]
      return { ...seen, readings: seen.readings.map((one) => ({ ...one, scopes })) }
    })
    await using lb = connect(fake, { runtime })
    const look = lb.observe([WEB1], context())
    if (times === 1) expect((await look).readings[0]?.scopes).toHaveLength(1)
    else await expect(look).rejects.toMatchObject({ code: 'CONFLICT', retryable: true })
  })

  test('is not contradicted by a name without an address', async () => {
    await using fake = await startFake()
    const runtime = eyes((seen) => moved(seen, { address: '-' }))
    await using lb = connect(fake, { runtime })
    const refs = [WEB1, { pool: 'web', member: 'web9' }]
    const { readings } = await lb.observe(refs, context())
    expect(readings.map((one) => one.present)).toEqual([true, false])
  })
})

function moved(seen: Snapshot, to: { address?: string; port?: number }): Snapshot {
  const readings = seen.readings.map((one) => (one.present ? { ...one, ...to } : one))
  return { ...seen, readings }
}

function gone({ readings }: Snapshot): Snapshot['readings'] {
  return readings.map(({ ref, scopes }) => ({ ref, present: false, scopes }))
}
