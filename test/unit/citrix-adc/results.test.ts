import type { ChangeResult, MemberRef } from 'drainable/provider'
import { expect, test } from 'vitest'
import { context, rig, WEB1, WEB2 } from './rig.js'

const SVC1 = { pool: 'vs', member: 'svc1' }
/** Members of groups go in one list, services in another one. */
const OPTIONS = { vservers: { vs: ['svc1', 'svc2'] } }
const toDrain = (ref: MemberRef) => ({ kind: 'hold', ref, to: 'drain' }) as const
const holds = [WEB1, WEB2].map(toDrain)

test('a batch given up halfway has handed up its results so far', async () => {
  await using at = await rig(OPTIONS)
  const controller = new AbortController()
  const handed: [number, ChangeResult][] = []
  const call = at.adc.apply(
    [WEB1, SVC1].map(toDrain),
    context(controller.signal, (index, result) => {
      handed.push([index, result])
      controller.abort('enough')
    }),
  )
  await expect(call).rejects.toBe('enough')
  expect(handed).toMatchObject([
    [0, { ref: WEB1, status: 'applied' }],
    [1, { ref: SVC1, status: 'rejected', error: { code: 'CALL_TIMEOUT' } }],
  ])
  expect([WEB1, SVC1].map((ref) => at.fake.look(ref).enabled)).toEqual([false, true])
})

test('a batch with a lost answer has handed up every result', async () => {
  await using at = await rig(OPTIONS)
  const handed: ChangeResult[] = []
  const results = await at.adc.apply(
    [WEB1, SVC1].map(toDrain),
    context(undefined, (index, result) => {
      handed[index] = result
      if (index === 0) at.fake.fail({ match: /action=disable/, how: 'reset' })
    }),
  )
  expect(results.map(({ status }) => status)).toEqual(['applied', 'unknown'])
  expect(handed).toEqual(results)
})

test('a batch that can not be looked at is refused change by change', async () => {
  await using at = await rig()
  at.fake.fail({ match: /GET .*servicegroup/, how: 'status', status: 403, errorcode: 2138 })
  const handed: ChangeResult[] = []
  const results = await at.adc.apply(
    holds,
    context(undefined, (index, result) => (handed[index] = result)),
  )
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(handed).toEqual(results)
})
