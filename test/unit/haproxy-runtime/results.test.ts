import type { ChangeResult } from 'drainable/provider'
import { expect, test } from 'vitest'
import { context, rig, WEB1, WEB2 } from './rig.js'

const holds = [WEB1, WEB2].map((ref) => ({ kind: 'hold', ref, to: 'drain' }) as const)

test('a batch given up halfway has handed up what was done and what was not', async () => {
  await using it = await rig()
  it.fake.fail({ match: /set server web\/web2/, how: 'silent', times: 1 })
  const controller = new AbortController()
  const handed: [number, ChangeResult][] = []
  const call = it.lb.apply(
    holds,
    context(controller.signal, (index, result) => {
      handed.push([index, result])
      controller.abort('enough')
    }),
  )
  await expect(call).rejects.toBe('enough')
  expect(handed).toMatchObject([
    [0, { ref: WEB1, status: 'applied' }],
    [1, { ref: WEB2, status: 'rejected', error: { code: 'CALL_TIMEOUT' } }],
  ])
  expect(it.fake.adminMask(WEB1)).toBe(8)
})

test('a batch whose second answer is lost has handed up both results', async () => {
  await using it = await rig()
  it.fake.fail({ match: /set server web\/web2/, how: 'reset', execute: true, times: 1 })
  const handed: ChangeResult[] = []
  const results = await it.lb.apply(
    holds,
    context(undefined, (index, result) => (handed[index] = result)),
  )
  expect(results.map(({ status }) => status)).toEqual(['applied', 'unknown'])
  expect(handed).toEqual(results)
})
