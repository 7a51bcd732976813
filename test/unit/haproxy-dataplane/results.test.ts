import type { ChangeResult } from 'drainable/provider'
import { expect, test } from 'vitest'
import { context, rig, until } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const WEB2 = { pool: 'web', member: 'web2' }

/** A context that keeps what is handed up. */
function handing(signal?: AbortSignal, then: () => void = () => undefined) {
  const handed: ChangeResult[] = []
  const result = (index: number, one: ChangeResult): void => {
    expect(handed[index]).toBeUndefined()
    handed[index] = one
    then()
  }
  return { handed, ctx: { ...context(signal), result } }
}

test('a batch given up halfway has handed up what was done', async () => {
  await using r = await rig()
  const controller = new AbortController()
  const { handed, ctx } = handing(controller.signal, () => {
    r.fake.fail({ match: /^PUT/, how: 'silent' })
  })
  // the second change of a member is a group of its own: it begins with the first one done
  const call = r.lb.apply(
    [
      { kind: 'hold', ref: WEB1, to: 'drain' },
      { kind: 'hold', ref: WEB1, to: 'maint' },
    ],
    ctx,
  )
  const ended = expect(call).rejects.toBe('enough')
  await until('the second change is sent', async () => {
    return r.fake.requests.filter(({ method }) => method === 'PUT').length === 2
  })
  controller.abort('enough')
  await ended
  expect(handed).toEqual([{ ref: WEB1, status: 'applied' }])
})

test('a result without need of a second look is handed up before it', async () => {
  await using r = await rig()
  const controller = new AbortController()
  const { handed, ctx } = handing(controller.signal, () => controller.abort('enough'))
  const call = r.lb.apply(
    [
      { kind: 'hold', ref: { pool: 'web', member: 'nobody' }, to: 'drain' },
      { kind: 'hold', ref: WEB1, to: 'drain' },
    ],
    ctx,
  )
  await expect(call).rejects.toBe('enough')
  expect(handed).toMatchObject([
    { status: 'rejected', error: { code: 'NOT_FOUND' } },
    { status: 'rejected', error: { code: 'CALL_TIMEOUT' } },
  ])
  expect(r.fake.requests.filter(({ method }) => method === 'PUT')).toEqual([])
})

test('a batch whose second look fails has handed up unknown results', async () => {
  await using r = await rig()
  r.fake.fail({ match: /^PUT .*web2/, how: 'reset' })
  const { handed, ctx } = handing()
  const results = await r.lb.apply(
    [WEB1, WEB2].map((ref) => ({ kind: 'hold', ref, to: 'drain' })),
    ctx,
  )
  expect(results.map(({ status }) => status)).toEqual(['applied', 'unknown'])
  expect(handed).toEqual(results)
})
