/** A HAProxy whose reload opens what is drained, through both of its adapters. */
import { plan, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/dataplane.js'
import { DOORS } from './haproxy-doors.js'

const WEB1 = { pool: 'web', member: 'web1' }
const pools = { web: ['web1', 'web2'] }
const SETTINGS = /server-state-file in global, and load-server-state-from-file in defaults/

describe.concurrent('a state file', () => {
  test.each(DOORS)('is not known before, and plan() over the %s says so', async (_, start) => {
    await using it = await start(pools)
    const { notes } = await plan(it.lb, WEB1)
    expect(notes).toContainEqual(expect.stringMatching(SETTINGS))
  })

  test.each(DOORS)('that is missing is told of a held idle: %s', async (_, start) => {
    await using it = await start(pools)
    await using drained = startDrain(it.lb, WEB1, { timeout: '30s' })
    await drained.done
    const opened = () =>
      drained.why().find(({ text }) => text.includes('no state file is in force'))
    expect(opened()).toBeUndefined()
    await it.fake.reload()
    await until('why() says it', () => Promise.resolve(opened()))
    expect(opened()?.hint).toMatch(SETTINGS)
    const { notes } = await plan(it.lb, WEB1)
    expect(notes).toContainEqual(expect.stringContaining('no state file is in force'))
  })
})
