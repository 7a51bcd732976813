import { drain } from 'drainable'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'
import { connect, present, until, warm } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }
const POOLS = { web: ['web1', 'web2'].map((name) => ({ name, weight: 7 })) }

test.each([
  ['at once', false],
  ['at once', true],
  ['late', false],
  ['late', true],
])(
  'frozen at the hold, carried out %s, aborted with restore: durable %s',
  async (when, durable) => {
    await using fake = await startFake({ pools: POOLS })
    await using lb = connect(fake, { durable, maintCuts: false })
    await warm(fake)
    using clock = ioClock()
    fake.fail({ match: /^PUT .*runtime/, how: 'silent', times: 1, execute: when === 'at once' })
    const giveUp = new AbortController()
    const reason = new Error('enough')
    const run = drain(lb, WEB1, {
      timeout: '10m',
      onAbort: 'restore',
      signal: giveUp.signal,
      clock,
    })
    const ended = expect(clock.run(run)).rejects.toBe(reason)
    const sent = () => fake.requests.some(({ line }) => /^PUT .*runtime/.test(line))
    await until('the hold', () => Promise.resolve(sent()))
    // a frozen HAProxy carries it out when it wakes up
    if (when === 'late') clock.setTimeout(() => void fake.setBehind(WEB1, 'drain'), 5_000)
    giveUp.abort(reason)
    await fake.restart() // the answer never comes
    await ended
    await using eyes = connect(fake)
    expect(await present(eyes, WEB1)).toMatchObject({ own: 'ready', serves: true, weight: 7 })
    expect(fake.config).not.toMatch(/weight 0| disabled/)
  },
)
