import { drain } from 'drainable'
import type { Change } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { context, rig, WEB1, type Rig } from './rig.js'

const TYPE = 'servicegroup_servicegroupmember_binding'

const row = (more: object): object => ({
  servicegroupname: 'web',
  ip: '10.0.0.1',
  servername: '10.0.0.1',
  port: 80,
  svrstate: 'UP',
  ...more,
})
const PLAIN = [row({}), row({ ip: '10.0.0.2', servername: '10.0.0.2' })]

/** A group with an odd row beside two plain ones. */
async function withRow(odd: object): Promise<Rig> {
  const at = await rig({ tick: 100 }, { freshness: 0 })
  at.fake.fail({
    match: /config\/servicegroup_servicegroupmember_binding/,
    how: 'status',
    status: 200,
    body: { errorcode: 0, message: 'Done', [TYPE]: [...PLAIN, odd] },
  })
  return at
}

describe.each([
  ['an address that is none', row({ ip: 'any6%1', servername: 'db1' })],
  ['no port', row({ ip: '10.0.0.3', servername: 'db1', port: undefined })],
  ['a port as a word', row({ ip: '10.0.0.3', servername: 'db1', port: 'ms-sql-s' })],
])('a neighbour with %s', (_what, odd) => {
  test('does not hide the other members', async () => {
    await using at = await withRow(odd)
    const { readings, pools } = await at.adc.observe([WEB1], context())
    expect(readings).toMatchObject([{ present: true, own: 'ready' }])
    expect(pools[0]?.unknown).toMatch(/a row of web can't be read/)
  })

  test('lets keepReady refuse', async () => {
    await using at = await withRow(odd)
    await expect(drain(at.adc, WEB1, { timeout: '20s' })).rejects.toMatchObject({
      code: 'POOL_AT_MINIMUM',
      message: expect.stringMatching(/a row of web can't be read/) as string,
    })
  })

  test('may be the member that is missing, so that one is not absent', async () => {
    await using at = await withRow(odd)
    const gone = { pool: 'web', member: 'db1:1433' }
    await expect(at.adc.observe([gone], context())).rejects.toMatchObject({
      code: 'MALFORMED_REPLY',
    })
    const add: Change = { kind: 'add', ref: gone, address: '10.0.0.3', port: 1_433 }
    const [result] = await at.adc.apply([add], context())
    expect(result?.status).toBe('rejected')
  })
})
