/** Nodes outlive their members: neither their names nor their addresses keep a member out. */
import type { Change } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { ctx, rig, type Rig } from './rig.js'

const POOLS = { web: ['10.0.0.1:80', { name: 'web-0:80', address: '10.0.0.2' }] }

function add(member: string, address: string): Change {
  return { kind: 'add', ref: { pool: '/Common/web', member }, address, port: 80 }
}

/** The members at an address, by the names they have there. */
async function at({ lb }: Rig, address: string): Promise<string[]> {
  const { readings } = await lb.observe('all', ctx())
  return readings.flatMap((one) =>
    one.present && one.address === address && one.own === 'ready' ? [one.ref.member] : [],
  )
}

async function remove({ lb }: Rig, member: string): Promise<void> {
  const ref = { pool: '/Common/web', member }
  for (const one of [{ kind: 'hold', ref, to: 'maint' } as const, { kind: 'remove', ref } as const])
    expect(await lb.apply([one], ctx())).toMatchObject([{ status: 'applied' }])
}

describe('a member', () => {
  test('whose node is left at another address gets another name', async () => {
    await using it = await rig({ pools: POOLS })
    await remove(it, '/Common/web-0:80')
    const added = await it.lb.apply([add('web-0:80', '10.0.0.3')], ctx())
    expect(added).toMatchObject([{ status: 'applied' }])
    const named = expect.stringMatching(/^\/Common\/web-0-[a-z0-9]+:80$/) as string
    expect(await at(it, '10.0.0.3')).toEqual([named])
  })

  test('that was added under another name comes back under it', async () => {
    await using it = await rig({ pools: POOLS })
    await remove(it, '/Common/web-0:80')
    await it.lb.apply([add('web-0:80', '10.0.0.3')], ctx())
    const [member = ''] = await at(it, '10.0.0.3')
    await remove(it, member)
    const again = await it.lb.apply([add('web-0:80', '10.0.0.3')], ctx())
    expect(again).toMatchObject([{ status: 'applied' }])
    expect(await at(it, '10.0.0.3')).toEqual([member])
  })

  test('whose address has a node already is of that node', async () => {
    await using it = await rig({ pools: POOLS })
    await remove(it, '/Common/web-0:80')
    const added = await it.lb.apply([add('web-5:80', '10.0.0.2')], ctx())
    expect(added).toMatchObject([{ status: 'applied' }])
    expect(await at(it, '10.0.0.2')).toEqual(['/Common/web-0:80'])
  })

  test('with a name of its own is refused for what else is wrong', async () => {
    await using it = await rig({ pools: POOLS })
    it.fake.fail({
      match: /^POST .*members/,
      how: 'status',
      status: 400,
      body: { code: 400, message: '01070734:3: Configuration error: no' },
    })
    const added = await it.lb.apply([add('web-9:80', '10.0.0.9')], ctx())
    expect(added).toMatchObject([{ status: 'rejected', error: { code: 'REJECTED' } }])
    expect(await at(it, '10.0.0.9')).toEqual([])
  })
})
