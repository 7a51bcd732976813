import { expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { WEB1 } from './rig.js'

// `npm run soak -- haproxy` reloads a real one fifty times.
test('20 reloads in one drain leave one process in its proof', async () => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
  await using lb = haproxyRuntime({ socket: fake.socket, master: fake.master })
  const end = await fake.occupy(WEB1)
  const kept = (): number => fake.requests.filter(({ line }) => line.startsWith('prompt')).length
  await using drained = startDrain(lb, WEB1, { timeout: '1m' })
  await drained.inForce
  for (let count = 0; count < 20; count += 1) {
    await fake.reload()
    await expect.poll(() => fake.adminMask(WEB1)).toBe(8) // it is back in the new process
    await expect.poll(() => kept()).toBeGreaterThanOrEqual(count + 2)
  }
  await expect.poll(() => drained.why().map(({ code }) => code)).toContain('old-scope')
  await end()
  const report = await drained.done
  expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: true, verifiedIdle: true })
  const { members } = await drained.ticket
  expect(members[0]!.processes).toHaveLength(1)
})
