import { drain, plan, select, startDrain } from 'drainable'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import type { DrainableProvider } from 'drainable/provider'
import { expect, test } from 'vitest'
import { connect, context } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'
import { parseErrorWords } from '../../../src/adapters/haproxy-dataplane/codec/replies.js'
import { failing } from './faults/set-up.js'
import { addServer } from '../../support/dataplane-writer.js'

/** A backend with a `default-server`: each new line needs a reload. */
const CONFIG = 'backend web\n  default-server weight 5\n  server web1 127.0.0.1:8001\n'

test.each(['2.9', '3.2', '3.4'])(
  'a server that is only in the file is told so: %s',
  async (version) => {
    await using fake = await startFake({ version, config: CONFIG, reloadDelay: Infinity })
    await using lb = connect(fake)
    await addServer(fake, 'web', 'web9')
    const call = drain(lb, { pool: 'web', member: 'web9' }, { timeout: '10s' })
    const { code, message } = await failing(call)
    expect(code).toBe('NOT_FOUND')
    expect(message).toContain('the configuration has it, HAProxy was not reloaded')
  },
)

test('a server that is nowhere is not said to be in the file', async () => {
  await using fake = await startFake()
  await using lb = connect(fake)
  const call = drain(lb, { pool: 'web', member: 'web9' }, { timeout: '10s' })
  expect((await failing(call)).message).not.toContain('the configuration has it')
})

test('a call that is given up for the size of HAProxy names callTimeout', async () => {
  await using fake = await startFake({ statsCost: 500 })
  await using lb = connect(fake, { callTimeout: '500ms' })
  const error = await failing(lb.observe([{ pool: 'web', member: 'web1' }], context()))
  expect(error.code).toBe('CALL_TIMEOUT')
  expect(error.message).toContain('raise callTimeout')
})

test.each([429, 503])(
  'a change that is put off by a %i says for how long at once',
  async (status) => {
    using clock = ioClock()
    await using fake = await startFake({ latency: 20, clock: clock.latency })
    await using lb = connect(fake)
    const headers = { 'retry-after': '40' }
    fake.fail({ match: /^PUT/, how: 'status', status, headers, times: 1 })
    const run = startDrain(lb, { pool: 'web', member: 'web1' }, { clock, timeout: '2m' })
    await clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000)))
    const asked: unknown = expect.stringContaining(
      'asked for no request for another 40 s (Retry-After)',
    )
    expect(run.why().map(({ text }) => text)).toContainEqual(asked)
    await clock.run(run.restore())
  },
)

test.each([
  ['select()', /stats/, (lb: DrainableProvider) => select(lb, { pool: 'web' })],
  ['plan()', /info$/, (lb: DrainableProvider) => plan(lb, { pool: 'web', member: 'web1' })],
])('%s waits as a front has asked for', async (_, match, call) => {
  await using fake = await startFake()
  await using lb = connect(fake)
  fake.fail({ match, how: 'status', status: 503, headers: { 'retry-after': '1' }, times: 1 })
  const begun = performance.now()
  await call(lb)
  expect(performance.now() - begun).toBeGreaterThan(900)
})

/** As 3.2.13 says it. */
const REFUSED = `validation error: exit status 1: err transactionId=a10388d3-f86a-4d5f-b838-181c55b613d5 
msg="[/var/lib/haproxy/transactions/haproxy.cfg.a10388d3-f86a-4d5f-b838-181c55b613d5:30] 'server b2/m2' unable to find required server 'm1' for tracking."
msg="Fatal errors found in configuration."`

test('why HAProxy refuses a configuration is shown, and no name of a temporary file', () => {
  const words = parseErrorWords(JSON.stringify({ code: 400, message: REFUSED }))
  expect(words).toBe("'server b2/m2' unable to find required server 'm1' for tracking.")
})
