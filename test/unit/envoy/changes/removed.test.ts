import { expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { envoy, restEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })
const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
const initial = [
  {
    cluster_name: 'web',
    endpoints: [
      {
        lb_endpoints: members.map((name) => ({
          endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
        })),
      },
    ],
  },
]

test('removed is said once no proxy lists the row: a slow REST poller', async () => {
  const sink = restEndpoints({ port: 0, initial })
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  await lb.observe('all', ctx()).catch(() => undefined)
  const rest = `http://127.0.0.1:${sink.address?.port}`
  await using fake = await startFake({ pools: { web: [] }, eds: { rest, interval: 700 } })
  admin.push(fake.url)
  const ref = { pool: 'web', member: members[0]! }
  const rows = async () => (await fetch(`${fake.url}/clusters`)).text()
  await expect.poll(rows).toContain(members[0])
  await using run = startDrain(lb, ref, { timeout: '50s', until: 'removed' })
  const report = await run.done
  expect(await rows()).not.toContain(members[0])
  expect(report.members[0]).toMatchObject({ outcome: 'removed', why: [] })
})

test('a busy endpoint leaves its set at the deadline, and its work goes on', async () => {
  const sink = restEndpoints({ port: 0, initial })
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  await lb.observe('all', ctx()).catch(() => undefined)
  const rest = `http://127.0.0.1:${sink.address?.port}`
  await using fake = await startFake({ pools: { web: [] }, eds: { rest, interval: 100 } })
  admin.push(fake.url)
  const ref = { pool: 'web', member: members[0]! }
  const rows = async () => (await fetch(`${fake.url}/clusters`)).text()
  await expect.poll(rows).toContain(members[0])
  await fake.occupy(ref)
  const policy = { timeout: '3s', until: 'removed', onTimeout: 'remove' } as const
  const report = await drain(lb, ref, policy)
  expect(await rows()).not.toContain(members[0])
  expect(report.members[0]).toMatchObject({
    outcome: 'removed',
    verifiedIdle: false,
    terminated: 0,
    why: [{ code: 'in-flight' }],
  })
})
