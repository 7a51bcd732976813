import { startDrain } from 'drainable'
import type { Change, ChangeResult } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../support/io-clock.js'
import { lines, rig, WEB1, WEB2, type Rig } from './rig.js'

const HOLD = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const PATCH = /^PATCH .*members/
/** The REST framework's words, and those of the configuration service. */
const GAVE_UP = {
  code: 400,
  message: 'java.util.concurrent.TimeoutException: remoteSender timed out',
  restOperationId: 4711,
  kind: ':resterrorresponse',
}
const NO = { code: 400, message: '01070734:3: Configuration error: no', errorStack: [] }

/** The first change of the configuration is answered so, and carried out 1.5 s later. */
async function late(clock: IoClock, body: object, status = 400): Promise<Rig> {
  const at = await rig({ clock }, { freshness: '100ms' })
  at.fake.fail({
    match: PATCH,
    how: 'status',
    status,
    body,
    times: 1,
    execute: true,
    executeAfter: 1_500,
  })
  return at
}

async function change(at: Rig, clock: IoClock, one: Change): Promise<ChangeResult> {
  const { signal } = new AbortController()
  const [result] = await clock.run(at.lb.apply([one], { clock, signal }))
  return result!
}

describe('a change that is answered with an error and carried out later', () => {
  test.each([
    ['the REST framework', 400, GAVE_UP],
    ['the web server', 500, '<html><title>Error</title>AsyncContext timeout</html>'],
  ])('has an open outcome if a layer gave up on it: %s', async (_, status, body) => {
    using clock = ioClock()
    await using at = await late(clock, body as object, status)
    const result = await change(at, clock, HOLD)
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CALL_TIMEOUT' } })
    expect(lines(at.fake).filter((line) => PATCH.test(line))).toHaveLength(1)
  })

  test('is not refused if it was refused in other words', async () => {
    using clock = ioClock()
    await using at = await late(clock, NO)
    expect(await change(at, clock, HOLD)).toMatchObject({ status: 'applied' })
  })

  test('is held by the drain, and undone by it', async () => {
    using clock = ioClock()
    await using at = await late(clock, GAVE_UP)
    await using run = startDrain(at.lb, WEB1, { timeout: '1m', seal: false, clock })
    expect(await clock.run(run.done)).toMatchObject({ outcome: 'idle' })
    expect(at.fake.state(WEB1)).toBe('drain')
    expect(await clock.run(run.restore())).toMatchObject({ outcome: 'restored' })
    expect(at.fake.state(WEB1)).toBe('ready')
  })
})

test('a true refusal stays one, and does not hold up the other changes', async () => {
  using clock = ioClock()
  await using at = await rig({ clock })
  at.fake.fail({ match: /^PATCH .*10\.0\.0\.1/, how: 'status', status: 400, body: NO })
  const seen: string[] = []
  const { signal } = new AbortController()
  const result = (_: number, { ref, status }: ChangeResult): void => {
    seen.push(`${ref.member} ${status} ${clock.now() < 1_000 ? 'at once' : 'later'}`)
  }
  const both = [HOLD, { ...HOLD, ref: WEB2 }]
  await clock.run(at.lb.apply(both, { clock, signal, result }))
  expect(seen).toEqual([`${WEB2.member} applied at once`, `${WEB1.member} rejected later`])
})
