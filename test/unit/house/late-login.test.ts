import { describe, expect, test } from 'vitest'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { fakeClock } from 'drainable/testing'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startF5 } from 'drainable/testing/f5-bigip'
import { ctx } from '../f5-bigip/rig.js'
import { eventually } from '../../support/eventually.js'

const pools = { web: ['web1', 'web2'] }
const common = { callTimeout: '300ms', tls: { insecure: true } } as const

/** A fake whose replies wait on a clock of its own, and a provider that waits 300 ms on another one. */
const logins = {
  f5Bigip: async (clock: ReturnType<typeof fakeClock>) => {
    const fake = await startF5({ pools, latency: 400, clock })
    const { url, username, password } = fake
    const lb = f5Bigip({ url, username, password, ...common })
    return { fake, lb, open: () => fake.tokens }
  },
  citrixAdc: async (clock: ReturnType<typeof fakeClock>) => {
    const fake = await startCitrix({ pools, latency: 400, clock })
    const { url, username, password } = fake
    const lb = citrixAdc({ url, username, password, ...common })
    return { fake, lb, open: () => fake.sessions }
  },
}

describe.each(Object.entries(logins))('a login of %s whose answer is late', (_name, start) => {
  /** The login was carried out, its answer is on its way, and the call was given up. */
  async function givenUp() {
    const device = fakeClock()
    const clock = fakeClock()
    const it = await start(device)
    const described = it.lb.describe({ ...ctx(), clock })
    described.catch(() => undefined)
    await eventually(() => expect(it.fake.requests).toHaveLength(1))
    await clock.advance(300)
    await expect(described).rejects.toMatchObject({
      code: 'CALL_TIMEOUT',
      message: expect.stringContaining('no complete answer within 300 ms') as string,
    })
    return { ...it, device, clock }
  }

  test('leaves no session once the provider is closed', async () => {
    const { fake, lb, open, device } = await givenUp()
    const closed = lb.close()
    let isClosed = false
    void closed.then(() => (isClosed = true))
    await eventually(async () => {
      await device.advance(400)
      expect(isClosed).toBe(true)
    })
    expect(fake.requests.length).toBeGreaterThan(1)
    expect(open()).toBe(0)
    await fake[Symbol.asyncDispose]()
  })

  test('is used by the next call', async () => {
    const { fake, lb, open, device, clock } = await givenUp()
    const next = lb.describe({ ...ctx(), clock })
    let isDone = false
    void next.finally(() => (isDone = true))
    await eventually(async () => {
      await device.advance(400)
      expect(isDone).toBe(true)
    })
    expect((await next).version).not.toBe('')
    expect(fake.requests.filter(({ line }) => /login/.test(line))).toHaveLength(1)
    expect(open()).toBe(1)
    await fake[Symbol.asyncDispose]()
  })

  test('is given up after 2 s more', async () => {
    const { fake, lb, device, clock } = await givenUp()
    await clock.advance(2_000)
    await lb.close()
    expect(fake.requests).toHaveLength(1)
    await device.advance(400)
    await fake[Symbol.asyncDispose]()
  })
})
