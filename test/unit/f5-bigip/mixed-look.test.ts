import { expect, test, vi } from 'vitest'
import { ctx, rig } from './rig.js'

const COUNT = 5

test('a mixed look tells at once that a node is enabled again', async () => {
  const numbers = Array.from({ length: COUNT }, (_, i) => i)
  const pools = Object.fromEntries(
    numbers.map((i) => [`p${i}`, [`10.0.1.${i}:80`, `10.0.2.${i}:80`]]),
  )
  await using it = await rig({ pools })
  const node = { pool: '@nodes', member: '10.0.2.0' }
  const members = numbers.map((i) => ({ pool: `/Common/p${i}`, member: `/Common/10.0.1.${i}:80` }))
  const refs = [node, ...members]
  await it.lb.apply([{ kind: 'hold', ref: node, to: 'drain' }], ctx())
  it.fake.setNodeBehind('10.0.1.3', 'maint')
  const { readings: off } = await it.lb.observe(refs, ctx())
  expect(off[4]).toMatchObject({ inherited: 'maint', serves: false })
  it.fake.setNodeBehind('10.0.1.3', 'ready')
  // What is found by an address may be two seconds old.
  const later = performance.now() + 2_500
  const now = vi.spyOn(performance, 'now').mockReturnValue(later)
  const { readings: on } = await it.lb.observe(refs, ctx())
  now.mockRestore()
  expect(on[4]).toMatchObject({ own: 'ready', serves: true })
})

test.each([undefined, ''])(
  'units that mean two members refuse a change for %j',
  async (identity) => {
    await using it = await rig({ pair: { bothActive: true }, pools: { web: ['10.0.0.9:80'] } })
    const ref = { pool: '/Common/web', member: '/Common/app:80' }
    const login = Buffer.from(`${it.fake.username}:${it.fake.password}`).toString('base64')
    for (const [i, url] of it.fake.urls.entries()) {
      const reply = await fetch(`${url}/mgmt/tm/ltm/pool/~Common~web/members`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Basic ${login}` },
        body: JSON.stringify({ name: '/Common/app:80', address: `10.0.0.${i + 1}` }),
      })
      expect(reply.ok).toBe(true)
    }
    const which = identity === undefined ? { ref } : { ref, identity }
    const [hold] = await it.lb.apply([{ ...which, kind: 'hold', to: 'drain' }], ctx())
    const [removal] = await it.lb.apply([{ ...which, kind: 'remove' }], ctx())
    expect([hold?.status, removal?.status]).toEqual(['rejected', 'rejected'])
  },
)
