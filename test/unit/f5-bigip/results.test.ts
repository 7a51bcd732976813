import type { CallContext, ChangeResult } from 'drainable/provider'
import { expect, test } from 'vitest'
import { ctx, present, rig, until, WEB1, WEB2 } from './rig.js'

const holds = [WEB1, WEB2].map((ref) => ({ kind: 'hold', ref, to: 'drain' }) as const)

function handing(signal?: AbortSignal) {
  const handed: [number, ChangeResult][] = []
  const result: CallContext['result'] = (index, one) => void handed.push([index, one])
  return { handed, context: { ...ctx(signal), result } }
}

const first = [[0, { ref: WEB1, status: 'applied' }]]

test('a batch given up halfway has handed up what was done', async () => {
  await using it = await rig()
  it.fake.fail({ match: /^PATCH .*10\.0\.0\.2/, how: 'silent' })
  const controller = new AbortController()
  const { handed, context } = handing(controller.signal)
  const ended = expect(it.lb.apply(holds, context)).rejects.toBe('enough')
  await until('the second is sent', () =>
    it.fake.requests.some(({ line }) => /^PATCH .*10\.0\.0\.2/.test(line)),
  )
  controller.abort('enough')
  await ended
  expect(handed).toEqual(first)
  expect([WEB1, WEB2].map((ref) => it.fake.state(ref))).toEqual(['drain', 'ready'])
})

test('a batch with a lost answer has handed up every result', async () => {
  await using it = await rig()
  it.fake.fail({ match: /^PATCH .*10\.0\.0\.2/, how: 'reset' })
  const { handed, context } = handing()
  const results = await it.lb.apply(holds, context)
  expect(results.map(({ status }) => status)).toEqual(['applied', 'unknown'])
  expect(handed).toEqual([...results.entries()])
})

test('a removal is handed up before the writes of others are sent', async () => {
  await using it = await rig()
  it.fake.fail({ match: /^PATCH/, how: 'silent' })
  const controller = new AbortController()
  const { handed, context } = handing(controller.signal)
  const [, second] = holds
  const call = it.lb.apply([{ kind: 'remove', ref: WEB1 }, second!], context)
  const ended = expect(call).rejects.toBe('enough')
  await until('the hold is sent', () => it.fake.requests.some(({ method }) => method === 'PATCH'))
  controller.abort('enough')
  await ended
  expect(handed).toEqual(first)
})

test('changes are handed up as they end, and their push is given up', async () => {
  const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
  await using it = await rig(
    { pair: true, pools: { web: names } },
    { configSync: { group: 'dg1' } },
  )
  it.fake.fail({ match: /^POST \/mgmt\/tm\/cm$/, how: 'silent', times: 1 })
  const controller = new AbortController()
  const { handed, context } = handing(controller.signal)
  const refs = names.map((name) => ({ pool: '/Common/web', member: `/Common/${name}` }))
  const call = it.lb.apply(
    refs.map((ref) => ({ kind: 'hold', ref, to: 'drain' })),
    context,
  )
  const ended = expect(call).rejects.toBe('enough')
  await until('the push is sent', () =>
    it.fake.requests.some(({ line }) => line === 'POST /mgmt/tm/cm'),
  )
  controller.abort('enough')
  await ended
  expect(handed).toEqual(refs.map((ref, i) => [i, { ref, status: 'applied' }]))
  expect((await present(it.lb, WEB1)).unverified).toContain('not pushed or saved')
  // Its own change is pending now: that is no reason to refuse the next one
  await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx())
  expect(it.fake.state(WEB1, it.fake.units[1])).toBe('maint')
})

test('a batch given up before it was sent leaves nothing to push', async () => {
  await using it = await rig({ pair: true }, { configSync: { group: 'dg1' } })
  it.fake.fail({ match: /^GET .*\/members\?/, how: 'silent', times: 1 })
  const controller = new AbortController()
  const ended = expect(it.lb.apply(holds, ctx(controller.signal))).rejects.toBe('enough')
  await until('the list is asked for', () =>
    it.fake.requests.some(({ line }) => /\/members\?/.test(line)),
  )
  controller.abort('enough')
  await ended
  expect((await present(it.lb, WEB1)).unverified).toBeUndefined()
})

test('a batch given up in its middle says which changes were made', async () => {
  const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
  await using it = await rig({ pools: { web: names } })
  it.fake.fail({ match: /^PATCH .*10\.0\.0\.2/, how: 'silent' })
  const controller = new AbortController()
  const { handed, context } = handing(controller.signal)
  const refs = names.map((name) => ({ pool: '/Common/web', member: `/Common/${name}` }))
  const call = it.lb.apply(
    refs.map((ref) => ({ kind: 'hold', ref, to: 'drain' })),
    context,
  )
  const ended = expect(call).rejects.toBe('enough')
  await until('the second is sent', () =>
    it.fake.requests.some(({ line }) => /^PATCH .*10\.0\.0\.2/.test(line)),
  )
  controller.abort('enough')
  await ended
  expect(handed.map(([, { status }]) => status)).toEqual(['applied', 'rejected'])
  expect(refs.map((ref) => it.fake.state(ref))).toEqual(['drain', 'ready', 'ready'])
})
