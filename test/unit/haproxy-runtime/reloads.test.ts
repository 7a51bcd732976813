import { expect, test, vi } from 'vitest'
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { type HaproxyFake, startFake } from 'drainable/testing/haproxy-runtime'
import { WEB1 } from './rig.js'

/** How long a new process reads its configuration, ms. */
const READS = 15_000

/**
 * A new process that was started long before it serves. Without a master a second reload is excluded only where a look
 * fell in between, and on a loaded machine two looks are far apart.
 */
async function reloadSlowly(fake: HaproxyFake): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - READS })
  const reloaded = fake.reload()
  vi.useRealTimers()
  await reloaded
}

// `npm run soak -- haproxy` reloads a real one fifty times.
test.each([
  [20, true],
  [12, false],
])('%i reloads in one drain, with a master: %s', async (times, master) => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master })
  await using lb = haproxyRuntime({
    socket: fake.socket,
    ...(fake.master === undefined ? {} : { master: fake.master }),
  })
  const end = await fake.occupy(WEB1)
  const kept = (): number => fake.requests.filter(({ line }) => line === 'prompt').length
  await using drained = startDrain(lb, WEB1, { timeout: '1m' })
  await drained.inForce
  for (let count = 0; count < times; count += 1) {
    await reloadSlowly(fake)
    await expect.poll(() => fake.adminMask(WEB1)).toBe(8) // it is back in the new process
    await expect.poll(() => kept()).toBeGreaterThanOrEqual(count + 2)
  }
  await expect.poll(() => drained.why().map(({ code }) => code)).toContain('old-scope')
  await end()
  const report = await drained.done
  expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: true, verifiedIdle: true })
  const { members } = await drained.ticket
  expect(Object.keys(members[0]!.state.proof.scopes)).toHaveLength(1)
})
