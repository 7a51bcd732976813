import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { type Rig, rig, showAs } from '../rig.js'
import { web1 } from '../set-up.js'

const BLIND = 1_100

/** A drain whose last request ends after 5 s; resolves with how long after that it was idle. */
async function untilIdle(
  mayHide: (clock: Rig['clock']) => boolean,
  more: { readonly lived?: () => number } = {},
): Promise<number> {
  const { clock, lb } = rig({ capabilities: { blind: BLIND } })
  showAs(lb, (reading) => ({
    ...reading,
    scopes: reading.scopes.map((scope) => ({
      ...scope,
      ...(mayHide(clock) ? { mayHide: true } : {}),
      ...(more.lived === undefined ? {} : { lived: more.lived() }),
    })),
  }))
  const end = lb.occupy(web1)
  await using run = startDrain(lb, web1, { clock, timeout: '10m', seal: false })
  await clock.advance(5_000)
  end()
  const from = clock.now()
  await clock.runUntil(run.done)
  return clock.now() - from
}

describe('a zero that may hide work', () => {
  test('is believed once it has lasted for the blind time', async () => {
    expect(await untilIdle(() => true)).toBeGreaterThanOrEqual(BLIND)
  })

  test('is believed at once where a later look can hide none', async () => {
    let looks = 0
    expect(await untilIdle((clock) => clock.now() >= 5_000 && looks++ === 0)).toBeLessThan(100)
  })

  test('is believed by the next look where it can hide none', async () => {
    expect(await untilIdle(() => false)).toBeLessThan(100)
  })

  test('lasts by the clock of the process, where that tells', async () => {
    // It runs at half the speed: a machine that has no time for it.
    let clock: Rig['clock'] | undefined
    const waited = await untilIdle(
      (given) => {
        clock = given
        return true
      },
      { lived: () => (clock?.now() ?? 0) / 2 },
    )
    expect(waited).toBeGreaterThanOrEqual(2 * BLIND)
  })
})

test('a word about hidden work that is no boolean makes the process unread', async () => {
  const { clock, lb } = rig()
  const scopeOf = (mayHide: unknown): object => ({ mayHide })
  showAs(lb, (r) => ({ ...r, scopes: r.scopes.map((s) => ({ ...s, ...scopeOf('yes') })) }))
  await using run = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(5_000)
  expect(run.report().members[0]?.phase).toBe('draining')
  expect(run.why()[0]?.text).toContain('it says mayHide: "yes"')
})
