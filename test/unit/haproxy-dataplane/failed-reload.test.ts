import { drain } from 'drainable'
import { expect, test } from 'vitest'
import { change, present, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const COMPLAINT = 'config: unknown keyword'

test('a removal whose reload fails says that the file was rolled back', async () => {
  await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
  const { config } = r.fake
  r.fake.refuseReload(COMPLAINT)
  const result = await change(r.lb, { kind: 'remove', ref: WEB1 })
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
  const { message } = (result as { error: Error }).error
  expect(message).toContain(COMPLAINT)
  expect(message).toContain("rolled the file back, which still has it; it is 'no check'")
  expect(r.fake.config).toBe(config)
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
})

test('a removing drain whose reload fails leaves the member held, aloud', async () => {
  const options = { membership: 'configuration', maintCuts: false } as const
  await using r = await rig({ reloadDelay: 10 }, options)
  r.fake.refuseReload(COMPLAINT)
  const drained = drain(r.lb, WEB1, { timeout: '60s', until: 'removed' })
  await expect(drained).rejects.toThrow("rolled the file back, which still has it; it is 'MAINT'")
  expect((await present(r.lb, WEB1)).own).toBe('maint')
})

test('an addition whose reload fails is refused, and not in the file', async () => {
  const config = `defaults
  default-server inter 1s
backend web
  server web1 127.0.0.1:8001
`
  await using r = await rig({ config, reloadDelay: 10 }, { membership: 'configuration' })
  r.fake.refuseReload(COMPLAINT)
  const ref = { pool: 'web', member: 'web9' }
  const result = await change(r.lb, { kind: 'add', ref, address: '127.0.0.1', port: 8009 })
  expect(result).toMatchObject({ status: 'rejected' })
  expect((result as { error: Error }).error.message).toContain('it was not added')
  expect(r.fake.config).toBe(config)
})
