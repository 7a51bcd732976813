import { expect, test } from 'vitest'
import { quickClock } from '../../support/quick-clock.js'
import { change, context, rig, WEB1 } from './rig.js'

const HOLD = { kind: 'hold', ref: WEB1 } as const

test('a drained member of unknown load is neither sealed nor called idle', async () => {
  await using at = await rig({}, { callTimeout: '5m' })
  const { fake, adc } = at
  await fake.occupy(WEB1)
  await change(adc, { ...HOLD, to: 'drain' })
  const nothing = { errorcode: 0, message: 'Done', severity: 'NONE' }
  const lift = fake.fail({
    match: /\/stat\/servicegroup/,
    how: 'status',
    status: 200,
    body: nothing,
  })
  const since = fake.requests.length
  const ctx = { ...context(), clock: quickClock(20) } // it is waited for, by the clock of the call
  const [result] = await adc.apply([{ ...HOLD, to: 'maint' }], ctx)
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'CONFLICT', retryable: true } })
  expect((result as { error: Error }).error.message).toContain('could not be counted')
  const sent = fake.requests.slice(since).filter(({ line }) => line.startsWith('POST'))
  expect(sent.filter(({ line }) => line.includes('action='))).toEqual([])
  const { readings } = await adc.observe([WEB1], context())
  expect(readings[0]!.scopes).toMatchObject([{ state: 'unread' }])
  await lift()
  const again = await adc.observe([WEB1], context())
  expect(again.readings[0]!.scopes).toMatchObject([{ state: 'read', active: 1 }])
})
