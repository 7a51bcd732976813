import { describe, expect, test } from 'vitest'
import { context, rig, WEB1 } from './rig.js'

const status = (match: RegExp, body: object) =>
  ({ match, how: 'status', status: 200, body }) as const

describe('an answer about an object that was not asked for', { concurrent: true }, () => {
  test('is no reading of a member', async () => {
    await using at = await rig()
    const type = 'servicegroup_servicegroupmember_binding'
    const row = { ip: '10.0.0.1', port: 80, svrstate: 'OUT OF SERVICE', servername: '10.0.0.1' }
    const body = { errorcode: 0, [type]: [{ servicegroupname: 'other', ...row }] }
    at.fake.fail(status(/_servicegroupmember_binding\/web/, body))
    await expect(at.adc.observe([WEB1], context())).rejects.toMatchObject({
      code: 'MALFORMED_REPLY',
    })
  })

  test('gives no counts of a service', async () => {
    await using at = await rig({ vservers: { vs: ['svc1'] } })
    const row = { name: 'svc2', activetransactions: '0', surgecount: '0', svrestablishedconn: '0' }
    at.fake.fail(status(/stat\/service\/svc1/, { errorcode: 0, service: [row] }))
    const seen = at.adc.observe([{ pool: 'vs', member: 'svc1' }], context())
    await expect(seen).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
  })
})

describe('a node whose pair is not mentioned any more', { concurrent: true }, () => {
  test('is not taken for a single node', async () => {
    await using at = await rig({ ha: true, pools: { web: [WEB1.member] } })
    const ctx = context()
    await at.adc.observe([WEB1], ctx)
    const lift = at.fake.fail(status(/hanode/, { errorcode: 0, message: 'Done', severity: 'NONE' }))
    await expect(at.adc.observe([WEB1], ctx)).rejects.toMatchObject({
      code: 'MALFORMED_REPLY',
      retryable: true,
    })
    await lift()
    expect((await at.adc.observe([WEB1], ctx)).readings).toMatchObject([{ present: true }])
  })
})

test.each([null, [], 0, 'text'])('a reply of %j is not a reading', async (body) => {
  await using at = await rig()
  at.fake.fail({ match: /_servicegroupmember_binding/, how: 'status', status: 200, body })
  await expect(at.adc.observe([WEB1], context())).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
})
