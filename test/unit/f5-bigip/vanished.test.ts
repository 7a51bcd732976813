import { startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { ctx, present, rig } from './rig.js'

const SITE = { name: 'site:80', fqdn: 'www.example.com' }
const MADE = ['7', '8'].map((n) => ({
  ...{ name: `_auto_192.0.2.${n}:80`, fqdn: 'www.example.com', ephemeral: true },
}))
const site = { pool: 'web', member: 'site:80' }
const [seven] = MADE.map(({ name }) => ({ pool: 'web', member: name }))
const hold = { kind: 'hold', ref: site, to: 'drain' } as const

test('an ephemeral member that DNS removes unseen verifies nothing', async () => {
  await using it = await rig({ pools: { web: [SITE, ...MADE] } })
  await it.lb.apply([hold], ctx())
  expect((await present(it.lb, site)).unverified).toBeUndefined()
  // One look showed nothing: what has come since is in no counter any more.
  await it.fake.setBehind(seven!, 'gone')
  expect((await present(it.lb, site)).unverified).toMatch(
    /192\.0\.2\.7:80: its connections may live/,
  )
  expect((await present(it.lb, site)).unverified).toBeDefined()
})

test('an ephemeral member that DNS removes at rest verifies nothing', async () => {
  await using it = await rig({ pools: { web: [SITE, ...MADE] } })
  await it.lb.apply([{ ...hold, to: 'maint' }], ctx())
  const { scopes } = await present(it.lb, site)
  const since = scopes[0]!.sampledAt
  await expect
    .poll(async () => (await present(it.lb, site)).scopes[0]!.sampledAt - since)
    .toBeGreaterThan(10)
  // What came since the last look is in no counter: a look shows the past.
  await it.fake.setBehind(seven!, 'gone')
  expect((await present(it.lb, site)).unverified).toMatch(/192\.0\.2\.7:80/)
})

test('an ephemeral member that DNS makes anew verifies nothing of the old', async () => {
  await using it = await rig({ pools: { web: [SITE, ...MADE] } })
  await it.lb.apply([hold], ctx())
  await present(it.lb, site)
  await it.fake.setBehind(seven!, 'gone')
  await present(it.lb, site)
  it.fake.addMember('web', MADE[0]!)
  expect((await present(it.lb, site)).unverified).toMatch(/192\.0\.2\.7:80/)
})

test('a drain is unverified if DNS removes a busy copy', async () => {
  await using it = await rig({ pools: { web: [SITE, ...MADE] } })
  await it.fake.occupy(seven!)
  const run = startDrain(it.lb, site, { timeout: '50s', settle: '50ms', keepReady: 0 })
  run.once('in-force', () => void it.fake.setBehind(seven!, 'gone'))
  const { outcome, members } = await run.done
  expect({ outcome, verified: members[0]!.verifiedIdle }).toEqual({
    outcome: 'idle',
    verified: false,
  })
  await run.close()
})
