import { expect, test } from 'vitest'
import { Reloads } from '../../../src/adapters/haproxy-dataplane/read/reloads.js'
import { present, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const process = (pid: number) => [{ node: 'lb', pid, uptime: 1, version: '3.2' }]

test('reloads are counted for a minute, including those after writes', () => {
  const reloads = new Reloads()
  reloads.note(process(1), '1', 0)
  reloads.note(process(2), '2', 10_000)
  expect(reloads.hint(10_000)).toBeUndefined()
  reloads.note(process(3), '2', 30_000)
  reloads.note(process(3), '2', 31_000)
  expect(reloads.hint(31_000)).toContain('2 times within the last minute, 1 of them after writes')
  expect(reloads.hint(70_000)).toBeUndefined()
  reloads.note(process(4), '2', 80_000)
  expect(reloads.hint(80_000)).toContain('not by writes through this API')
})

test.each([
  ['wait', true],
  ['accept', false],
] as const)('with oldWorkers %s a look after two reloads says so: %s', async (oldWorkers, said) => {
  await using r = await rig({}, { oldWorkers })
  await present(r.lb, WEB1)
  await r.fake.reload()
  expect((await present(r.lb, WEB1)).hints).toBeUndefined()
  await r.fake.reload()
  const { hints = [] } = await present(r.lb, WEB1)
  expect(hints.join().includes('reloaded 2 times')).toBe(said)
})
