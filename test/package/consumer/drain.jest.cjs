const entries = require('./entries.json')

test.each(entries)('%s is loaded', (entry) => {
  expect(Object.keys(require(entry)).length).toBeGreaterThan(0)
})

test('a member is drained and made ready', async () => {
  const { drain, ready } = require('drainable')
  const { fakeClock, fakeProvider } = require('drainable/testing')
  const clock = fakeClock()
  const balancer = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const web1 = { pool: 'web', member: 'web1' }
  const report = await clock.runUntil(drain(balancer, web1, { clock, timeout: '30s' }))
  expect(report.members[0].verifiedIdle).toBe(true)
  await clock.runUntil(ready(balancer, web1, { clock }))
})
