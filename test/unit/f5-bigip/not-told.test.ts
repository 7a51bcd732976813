/** What a unit does not tell once, or denies of everything. */
import { expect, test } from 'vitest'
import { present, read, rig, WEB1 } from './rig.js'

const ABSENT = {
  code: 404,
  message: '01020036:3: The requested object was not found.',
  errorStack: [],
  apiError: 3,
}

test('a unit whose role was not told once is one process', async () => {
  await using it = await rig()
  it.fake.fail({ match: /failover-status/, how: 'status', status: 200, body: {}, times: 1 })
  const first = await present(it.lb, WEB1)
  const second = await present(it.lb, WEB1)
  expect(second.scopes[0]?.incarnation).toBe(first.scopes[0]?.incarnation)
})

test('a device that calls even sys/ready absent removes no member', async () => {
  await using it = await rig()
  await present(it.lb, WEB1)
  it.fake.fail({ match: /members|sys.ready/, how: 'status', status: 404, body: ABSENT })
  await expect(read(it.lb, WEB1)).rejects.toMatchObject({ code: 'CONFLICT', retryable: true })
})
