import { startDrain } from 'drainable'
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { fakeClock } from 'drainable/testing'
import { describe, expect, test } from 'vitest'
import { change, connect, context, present } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
type OldWorkers = NonNullable<HaproxyDataplaneOptions['oldWorkers']>

const config = (stop: string): string => `global
  ${stop}
backend web
  server web1 127.0.0.1:8001
  server web2 127.0.0.1:8002
`

const ROWS: readonly [string, string, number, OldWorkers | undefined, string | true][] = [
  ['3.2', 'hard-stop-after 300s', 1_000, { within: '3s' }, 'is below hard-stop-after'],
  ['2.9', 'hard-stop-after 300s', 1_000, { within: '3s' }, 'is below hard-stop-after'],
  ['3.2', 'hard-stop-after 300s', 1_000, { within: '5m' }, true],
  ['3.2', 'hard-stop-after 300s', 100, { within: '5m' }, 'is not over yet'],
  ['3.2', 'daemon', 1_000, { within: '3s' }, 'has no hard-stop-after'],
  ['2.9', 'hard-stop-after 5m', 301, { within: '5m' }, true],
  ['3.4', 'hard-stop-after 300s', 200, { within: '5m' }, 'is not over yet'],
  ['3.2', 'hard-stop-after 2s', 1_000_000, undefined, 'oldWorkers: { within: <that time> }'],
  ['3.2', 'hard-stop-after 2s', 1_000, undefined, 'configuration has 2000 ms'],
  ['3.2', 'hard-stop-after 2s', 1_000, 'accept', 'does not show HAProxy processes'],
]

/** Another client lowers it in the file. Returns the status of the answer. */
async function lower(fake: DataplaneFake, tree: string, how = ''): Promise<number> {
  const raw = `${fake.url}/${tree}/services/haproxy/configuration/raw?version=1${how}`
  const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`
  const headers = { authorization, 'content-type': 'text/plain' }
  const body = fake.config.replace('300s', '2s')
  return (await fetch(raw, { method: 'POST', headers, body })).status
}

describe.concurrent('idle is verified only if no old process can be left', () => {
  test.each(ROWS)(
    'on %s with %s after %d s and oldWorkers %j: %s',
    async (version, stop, uptime, oldWorkers, verified) => {
      await using fake = await startFake({ version, config: config(stop), uptime })
      await using lb = connect(fake, { oldWorkers })
      await using run = startDrain(lb, WEB1, { timeout: '60s' })
      const [member] = (await run.done).members
      expect(member!.outcome).toBe('idle')
      expect(member!.verifiedIdle).toBe(verified === true)
      if (verified !== true) expect(JSON.stringify(member)).toContain(verified)
    },
  )

  test('even if the configuration is lowered later', async () => {
    const text = config('hard-stop-after 300s')
    await using fake = await startFake({ config: text, uptime: 100 })
    await using lb = connect(fake, { oldWorkers: { within: '3s' } })
    expect((await present(lb, WEB1)).unverified).toContain('300000 ms')
    expect(await lower(fake, 'v3', '&skip_reload=true')).toBe(201)
    expect(fake.config).toContain('hard-stop-after 2s')
    expect((await present(lb, WEB1)).unverified).toContain('300000 ms')
  })

  test.each([
    ['an error of the server', { how: 'status', status: 503 }],
    ['an answer that is none', { how: 'garbage' }],
  ] as const)('not before the section was read: %s', async (_, failure) => {
    await using fake = await startFake({ config: config('hard-stop-after 300s'), uptime: 1_000 })
    const mend = fake.fail({ match: /GET .*configuration\/raw/, ...failure })
    await using lb = connect(fake, { oldWorkers: { within: '3s' } })
    expect((await present(lb, WEB1)).unverified).toContain('could not be read yet')
    await mend()
    expect((await present(lb, WEB1)).unverified).toContain('is below hard-stop-after')
  })

  test('by the word of the operator if the section may not be read', async () => {
    await using fake = await startFake({ config: config('hard-stop-after 300s'), uptime: 100 })
    fake.fail({ match: /GET .*configuration\/raw/, how: 'status', status: 403 })
    await using told = connect(fake, { oldWorkers: { within: '60s' } })
    expect((await present(told, WEB1)).unverified).toBeUndefined()
  })
})

describe.concurrent('hard-stop-after that was lowered in the file', () => {
  test.each(['2.9', '3.2', '3.4'])('is not that of a process from before: %s', async (version) => {
    const options = { version, reloadDelay: Infinity, startup: Infinity, uptime: 1_000 }
    await using fake = await startFake({ config: config('hard-stop-after 300s'), ...options })
    expect(await lower(fake, version === '2.9' ? 'v2' : 'v3')).toBe(202)
    await using lb = connect(fake)
    const scopes = async (later: number) => {
      const { signal, clock } = context()
      const ahead = { ...clock, now: () => clock.now() + later }
      const { readings } = await lb.observe([WEB1], { signal, clock: ahead })
      return readings[0]!.scopes
    }
    await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    await fake.occupy(WEB1)
    await scopes(1_000)
    await scopes(60_000)
    await fake.advanceReload()
    await fake.advanceReload()
    await scopes(61_000)
    const left = (await scopes(90_000)).filter(({ old }) => old)
    expect(left).toMatchObject([{ state: 'unread' }])
    expect(left[0]!.note).toContain('within')
  })
})

test('a drain that saw a process replaced waits for it past the minute', async () => {
  const clock = fakeClock()
  await using fake = await startFake()
  await using lb = connect(fake)
  await using run = startDrain(lb, WEB1, { timeout: '3m', clock })
  const passes = async (ms: number, until: () => boolean): Promise<void> => {
    await expect
      .poll(async () => (await clock.advance(ms), until()), { timeout: 30_000 })
      .toBe(true)
  }
  const says = (words: string): boolean => run.why().some(({ text }) => text.includes(words))
  await passes(250, () => run.report().members[0]?.phase === 'draining')
  await fake.reload()
  await passes(250, () => says('replaced by a reload'))
  await passes(5_000, () => says('nothing reported its end'))
  expect(says('give runtime: haproxyRuntime({ socket, master })')).toBe(true)
  expect(run.report().members[0]?.phase).toBe('draining')
})
