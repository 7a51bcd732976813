import { describe, expect, test } from 'vitest'
import type { DrainableProvider } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { fakeClock } from 'drainable/testing'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startF5 } from 'drainable/testing/f5-bigip'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'

const pools = { web: ['web1', 'web2'] }
const wrong = { username: 'admin', password: 'wr0ng-password' }

/** Both closed together. */
function together(fake: AsyncDisposable & { requests: readonly unknown[] }, lb: DrainableProvider) {
  return {
    fake,
    lb,
    async [Symbol.asyncDispose](): Promise<void> {
      await lb.close()
      await fake[Symbol.asyncDispose]()
    },
  }
}

/** Every adapter that logs in, each way it can; the fake takes another password. */
const logins = {
  'citrixAdc, session': async () => {
    const fake = await startCitrix({ pools })
    return together(fake, citrixAdc({ url: fake.url, ...wrong, tls: { insecure: true } }))
  },
  'citrixAdc, headers': async () => {
    const fake = await startCitrix({ pools })
    return together(
      fake,
      citrixAdc({ url: fake.url, ...wrong, tls: { insecure: true }, auth: 'headers' }),
    )
  },
  'f5Bigip, token': async () => {
    const fake = await startF5({ pools })
    return together(fake, f5Bigip({ url: fake.url, ...wrong, tls: { insecure: true } }))
  },
  'citrixAdc, a pair': async () => {
    const fake = await startCitrix({ pools, ha: true })
    return together(fake, citrixAdc({ url: fake.urls, ...wrong, tls: { insecure: true } }))
  },
  'f5Bigip, a pair': async () => {
    const fake = await startF5({ pools, pair: true })
    return together(fake, f5Bigip({ url: fake.urls, ...wrong, tls: { insecure: true } }))
  },
  'f5Bigip, a pair, basic': async () => {
    const fake = await startF5({ pools, pair: true })
    const options = { ...wrong, tls: { insecure: true }, auth: 'basic' } as const
    return together(fake, f5Bigip({ url: fake.urls, ...options }))
  },
  'f5Bigip, basic': async () => {
    const fake = await startF5({ pools })
    return together(
      fake,
      f5Bigip({ url: fake.url, ...wrong, tls: { insecure: true }, auth: 'basic' }),
    )
  },
  haproxyDataplane: async () => {
    const fake = await startDataplane({ pools })
    return together(fake, haproxyDataplane({ url: fake.url, ...wrong }))
  },
}

describe.each(Object.entries(logins))('%s', (name, open) => {
  test('a refused password is sent once, and again when its time is over', async () => {
    await using it = await open()
    const clock = fakeClock()
    const ctx = { clock, signal: new AbortController().signal }
    const refused = async (): Promise<number> => {
      const error: unknown = await it.lb
        .observe([{ pool: 'web', member: 'web1' }], ctx)
        .catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'UNAUTHENTICATED' })
      expect(String(error)).not.toContain(wrong.password)
      return it.fake.requests.length
    }
    const first = await refused()
    expect(first).toBe(1)
    for (let i = 0; i < 5; i++) expect(await refused()).toBe(first)
    // of a pair, the unit that refused it is asked last
    await clock.advance(name.includes('pair') ? 60_000 : 30_000)
    expect(await refused()).toBe(2 * first)
    for (let i = 0; i < 5; i++) expect(await refused()).toBe(2 * first)
  })
})
