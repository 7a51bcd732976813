import { type MemberReport, startDrain } from 'drainable'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'
import { connect, present, warm } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }
const CONFIG = `global
  hard-stop-after 300s
backend web
  server web1 127.0.0.1:8001
  server web2 127.0.0.1:8002
`
const LIMITED = { web: [{ name: 'web1', maxconn: 10 }, 'web2'] }

test('work may hide where the server has a limit', async () => {
  await using fake = await startFake({ pools: LIMITED })
  await using lb = connect(fake)
  expect((await present(lb, WEB1)).scopes[0]).toMatchObject({ mayHide: true })
  const other = await present(lb, { pool: 'web', member: 'web2' })
  expect(other.scopes[0]).not.toHaveProperty('mayHide')
})

test('work may hide where the server had a queue', async () => {
  await using fake = await startFake()
  await using lb = connect(fake)
  const served = await fake.queue(WEB1)
  await served()
  expect((await present(lb, WEB1)).scopes[0]).toMatchObject({ queued: 0, mayHide: true })
})

test('idle waits for the quiet time once a queue is empty', async () => {
  await using fake = await startFake()
  await using lb = connect(fake, { maintCuts: false })
  await warm(fake)
  using clock = ioClock()
  const served = await fake.queue(WEB1)
  await using run = startDrain(lb, WEB1, { timeout: '10m', clock })
  let idleAt = Infinity
  run.on('idle', () => (idleAt = clock.now()))
  let emptyAt = 0
  clock.setTimeout(() => {
    emptyAt = clock.now()
    void served()
  }, 5_000)
  await clock.run(run.done)
  expect(idleAt - emptyAt).toBeGreaterThanOrEqual(1_100)
})

/** What is said of an idle server of which a retry was seen so long before. */
async function idleAfterRetry(ms: number): Promise<MemberReport | undefined> {
  await using fake = await startFake({ config: CONFIG })
  fake.age(1_000)
  await using lb = connect(fake, { maintCuts: false, oldWorkers: { within: '5m' } })
  await warm(fake)
  using clock = ioClock()
  const end = await fake.occupy(WEB1)
  await using run = startDrain(lb, WEB1, { timeout: '10m', clock })
  clock.setTimeout(() => fake.retry(WEB1), 5_000)
  clock.setTimeout(() => void end(), 5_000 + ms)
  return (await clock.run(run.done)).members[0]
}

test('idle is not verified soon after a connection was tried again', async () => {
  const member = await idleAfterRetry(2_000)
  expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
  expect(member?.why[0]?.text).toContain('a connection to it was tried again')
})

test('idle is verified long after a connection was tried again', async () => {
  expect(await idleAfterRetry(40_000)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
})
