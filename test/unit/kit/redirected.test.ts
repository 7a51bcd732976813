/** A web server in front of a product that redirects, as one that restarts does, through each adapter that speaks REST. */
import { startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { PRODUCTS } from './products.js'

const REDIRECT = { how: 'status', status: 302, headers: { location: '/login' }, body: '' } as const

test.each(PRODUCTS)('a redirected change of a %s is sent again', async (_, of) => {
  using clock = ioClock()
  await using fake = await of.start(clock)
  const { url, username, password } = fake
  await using lb = of.connect({ url, username, password })
  fake.fail({ ...REDIRECT, match: of.change, times: 3 })
  const run = startDrain(lb, of.ref, { clock, timeout: '2m' })
  expect((await clock.run(run.done)).outcome).toBe('idle')
  expect((await clock.run(run.restore())).outcome).toBe('restored')
})

test.each(PRODUCTS)('a redirected change of a %s is unknown, not refused', async (_, of) => {
  using clock = ioClock()
  await using fake = await of.start(clock)
  const { url, username, password } = fake
  await using lb = of.connect({ url, username, password })
  const { signal } = new AbortController()
  fake.fail({ ...REDIRECT, match: of.change })
  const hold = { kind: 'hold', ref: of.ref, to: 'drain' } as const
  const [result] = await clock.run(lb.apply([hold], { clock, signal }))
  expect(result).toMatchObject({ status: 'unknown' })
  expect(result).toHaveProperty('error.message', expect.stringMatching(/redirect|302/))
})
