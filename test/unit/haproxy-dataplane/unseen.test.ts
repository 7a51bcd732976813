/** What became of an addition or a removal that was sent, where the look after it fails. */
import type { DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, look, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const NINE = { pool: 'web', member: 'web9' }
const add = { kind: 'add', ref: NINE, address: '10.0.0.9', port: 80 } as const
const remove = { kind: 'remove', ref: WEB1 } as const

/** A front refuses the look after the change, as when it is configured anew. */
function refuseLook(fake: DataplaneFake): void {
  fake.fail({ match: /^GET .*stats/, how: 'status', status: 403, skip: 1, times: 1 })
}

describe.concurrent.each(['2.9', '3.4'])('a look that is refused on %s', (version) => {
  test.each([
    ['an addition', { membership: 'runtime' }, add],
    ['an addition to the configuration', { membership: 'configuration' }, add],
    ['a removal from the configuration', { membership: 'configuration' }, remove],
  ] as const)('does not call %s refused', async (_, options, one) => {
    await using r = await rig({ version, reloadDelay: 10 }, options)
    refuseLook(r.fake)
    expect(await change(r.lb, one)).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
    expect((await look(r.lb, one.ref)).present).toBe(one.kind === 'add')
  })

  test('does not call a removal refused whose answer was lost', async () => {
    await using r = await rig({ version })
    refuseLook(r.fake)
    r.fake.fail({ match: /^DELETE/, how: 'reset', execute: true, times: 1 })
    expect(await change(r.lb, remove)).toMatchObject({
      status: 'unknown',
      error: { code: 'CONNECTION_LOST' },
    })
    expect((await look(r.lb, WEB1)).present).toBe(false)
  })
})
