/** An undo that the balancer holds up with its errors says which, and not what its health check may have to do with it. */
import { startDrain } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { PRODUCTS } from './products.js'

const REASONS = [
  ['BIG-IP', 401, 20_000, 'UNAUTHENTICATED', "login as 'admin'"],
  ['Citrix ADC', 401, 20_000, 'UNAUTHENTICATED', "login as 'admin'"],
  ['BIG-IP', 403, 28_000, 'FORBIDDEN', 'the user admin needs the role'],
  ['BIG-IP', 503, 28_000, 'CONFLICT', 'the control plane is busy or restarting'],
] as const

test.each(REASONS)(
  'an undo of a %s that says %i for %i ms ends as %s',
  async (name, status, ms, code, why) => {
    const product = new Map(PRODUCTS).get(name)!
    using clock = ioClock()
    await using fake = await product.start(clock)
    const { url, username, password } = fake
    await using lb = product.connect({ url, username, password })
    const run = startDrain(lb, product.ref, { clock, timeout: '5m' })
    expect((await clock.run(run.done)).outcome).toBe('idle')
    const answer = fake.fail({ how: 'status', status })
    clock.setTimeout(() => void answer(), ms)
    const { members } = await clock.run(run.restore())
    const message = expect.stringContaining(why) as string
    const error = { code, message }
    expect(members).toMatchObject([{ outcome: 'unreachable', error }])
  },
)

test('an undo held up for 5 s whose check never passes ends as HEALTH_TIMEOUT', async () => {
  using clock = ioClock()
  const pools = { '/Common/web': ['10.0.0.1:80', '10.0.0.2:80'] }
  const slow = { latency: 20, clock: clock.latency, checkDelay: 600_000 }
  await using fake = await startBigip({ pools, tls: false, ...slow })
  const { url, username, password } = fake
  await using lb = f5Bigip({ url, username, password })
  const ref = { pool: '/Common/web', member: '/Common/10.0.0.1:80' }
  const run = startDrain(lb, ref, { clock, timeout: '5m' })
  expect((await clock.run(run.done)).outcome).toBe('idle')
  const answer = fake.fail({ how: 'status', status: 503 })
  clock.setTimeout(() => void answer(), 5_000)
  const { members } = await clock.run(run.restore())
  expect(members).toMatchObject([{ outcome: 'refused', error: { code: 'HEALTH_TIMEOUT' } }])
})
