import { startDrain } from 'drainable'
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { connect, present } from '../../support/dataplane.js'

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
  ['3.2', 'hard-stop-after 300s', 1_000, 'hard-stop-after', true],
  ['2.9', 'hard-stop-after 5m', 301, 'hard-stop-after', true],
  ['3.4', 'hard-stop-after 300s', 200, 'hard-stop-after', '(300000 ms) is not over yet'],
  ['3.2', 'daemon', 1_000_000, 'hard-stop-after', 'has no hard-stop-after'],
  ['3.2', 'hard-stop-after 2s', 1_000, undefined, 'configuration has 2000 ms'],
  ['3.2', 'hard-stop-after 2s', 1_000, 'accept', 'does not show HAProxy processes'],
]

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
    await using lb = connect(fake, { oldWorkers: 'hard-stop-after' })
    expect((await present(lb, WEB1)).unverified).toContain('300000 ms')
    const raw = `${fake.url}/v3/services/haproxy/configuration/raw?version=1&skip_reload=true`
    const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`
    const headers = { authorization, 'content-type': 'text/plain' }
    const body = text.replace('300s', '2s')
    expect((await fetch(raw, { method: 'POST', headers, body })).status).toBe(201)
    expect(fake.config).toContain('hard-stop-after 2s')
    expect((await present(lb, WEB1)).unverified).toContain('300000 ms')
  })

  test.each([
    ['an error of the server', { how: 'status', status: 503 }],
    ['an answer that is none', { how: 'garbage' }],
  ] as const)('not before the section was read: %s', async (_, failure) => {
    await using fake = await startFake({ config: config('hard-stop-after 300s'), uptime: 1_000 })
    const mend = fake.fail({ match: /configuration\/global/, ...failure })
    await using lb = connect(fake, { oldWorkers: { within: '3s' } })
    expect((await present(lb, WEB1)).unverified).toContain('could not be read yet')
    await mend()
    expect((await present(lb, WEB1)).unverified).toContain('is below hard-stop-after')
  })

  test('by the word of the operator if the section may not be read', async () => {
    await using fake = await startFake({ config: config('hard-stop-after 300s'), uptime: 100 })
    fake.fail({ match: /configuration\/global/, how: 'status', status: 403 })
    await using told = connect(fake, { oldWorkers: { within: '60s' } })
    expect((await present(told, WEB1)).unverified).toBeUndefined()
    await using asked = connect(fake, { oldWorkers: 'hard-stop-after' })
    expect((await present(asked, WEB1)).unverified).toContain('does not show HAProxy processes')
  })
})
