import { startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { Reloads } from '../../../src/adapters/haproxy-dataplane/read/reloads.js'
import { present, rig, until } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const process = (pid: number) => [{ node: 'lb', pid, uptime: 1, version: '3.2' }]

test('reloads are counted for a minute, with those after writes', () => {
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

test('a drain says early that reloads keep it from its end', async () => {
  await using r = await rig()
  const run = startDrain(r.lb, WEB1, { timeout: '60s' })
  for (const _ of [1, 2]) {
    await until('the drain', async () => (await present(r.lb, WEB1)).own === 'drain')
    await r.fake.reload()
  }
  const why = await until('it is said', async () => {
    const said = JSON.stringify(run.why())
    return said.includes('reloaded 2 times') && said
  })
  expect(why).toContain('hard-stop-after')
  await run.restore()
})
