import { describe, expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake, type FakeOptions } from 'drainable/testing/envoy'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/provider/clock.js'

const refOf = (i: number) => ({ pool: 'web', member: `10.0.0.${i}:80` })
const setOf = (members: readonly number[], drained: readonly number[] = []) => ({
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: members.map((i) => ({
        endpoint: { address: { socket_address: { address: `10.0.0.${i}`, port_value: 80 } } },
        ...(drained.includes(i) ? { health_status: 'DRAINING' } : {}),
      })),
    },
  ],
})

/** A set that another client writes into a file that a fake watches. */
async function stage(options: FakeOptions = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const file = join(dir, 'web.json')
  let set: unknown
  let version = 0
  const write = async (next: unknown): Promise<void> => {
    set = next
    const text = JSON.stringify({ version_info: `${++version}`, resources: [next] })
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
  await write(setOf([1, 2]))
  const fake = await startFake({ pools: { web: [] }, eds: { file }, ...options })
  const sink = callbackEndpoints({ load: () => Promise.resolve(set), publish: write })
  return {
    fake,
    provide: () => envoy({ endpoints: sink, admin: [fake.url] }),
    /** Writes it, and waits until the proxy has so many hosts. */
    put: async (members: readonly number[], drained: readonly number[]) => {
      await write(setOf(members, drained))
      const rows = async () => await (await fetch(`${fake.url}/clusters`)).text()
      await expect
        .poll(async () => (await rows()).split('::rq_active::').length)
        .toBe(members.length + 1)
    },
    look: async (lb: ReturnType<typeof envoy>, i = 1) => {
      const signal = AbortSignal.timeout(10_000)
      const { readings } = await lb.observe([refOf(i)], { signal, clock: systemClock })
      return readings[0]
    },
    [Symbol.asyncDispose]: async () => {
      await fake.close()
      await rm(dir, { recursive: true })
    },
  }
}

describe('an endpoint that left its set and came back', () => {
  test('still has its earlier work, whoever looks', async () => {
    await using it = await stage()
    await using lb = it.provide()
    const end = await it.fake.occupy(refOf(1))
    await it.put([1, 2], [1])
    await expect.poll(async () => (await it.look(lb))?.scopes[0]?.active).toBe(1)
    await it.put([2], [])
    await it.put([1, 2], [1])
    await using fresh = it.provide()
    for (const one of [lb, fresh]) {
      const reading = await it.look(one)
      expect(reading?.scopes[0]).toMatchObject({ active: 1, arrivals: 0 })
      expect(JSON.stringify(reading)).toContain('on no listed endpoint')
    }
    await end()
    for (const one of [lb, fresh]) expect((await it.look(one))?.scopes[0]?.active).toBe(0)
  })

  test('has no leftover if it had no work when it was drained', async () => {
    await using it = await stage()
    await using lb = it.provide()
    await it.put([1, 2], [1])
    await expect
      .poll(async () => (await it.look(lb))?.scopes[0])
      .toMatchObject({ inForce: true, active: 0 })
    const end = await it.fake.occupy(refOf(2))
    await it.put([1], [1])
    await it.put([1, 2], [1])
    expect((await it.look(lb))?.scopes[0]?.active).toBe(0)
    await end()
  })

  test('that serves is not counted by what others may have', async () => {
    await using it = await stage()
    await using lb = it.provide()
    const end = await it.fake.occupy(refOf(1))
    await it.put([2], [])
    await it.put([1, 2], [])
    expect((await it.look(lb, 2))?.scopes[0]?.active).toBe(0)
    await end()
  })

  test('is unread if the gauge is hidden', async () => {
    await using it = await stage({ hiddenStats: [/upstream_rq_active/] })
    await using lb = it.provide()
    const end = await it.fake.occupy(refOf(1))
    await it.put([1, 2], [1])
    await expect.poll(async () => (await it.look(lb))?.scopes[0]?.active).toBe(1)
    await it.put([2], [])
    await it.put([1, 2], [1])
    expect((await it.look(lb))?.scopes[0]).toMatchObject({
      state: 'unread',
      note: expect.stringContaining('upstream_cx_') as unknown,
    })
    await end()
  })

  test('is not known in a second drain either', async () => {
    await using it = await stage({ hiddenStats: [/upstream_rq_active/] })
    await using lb = it.provide()
    const end = await it.fake.occupy(refOf(1))
    await it.put([1, 2], [1])
    await expect.poll(async () => (await it.look(lb))?.scopes[0]?.active).toBe(1)
    await it.put([2], [])
    await it.put([1, 2], [1])
    expect((await it.look(lb))?.scopes[0]).toMatchObject({ state: 'unread' })
    // That drain is undone, and another one begins.
    await it.put([1, 2], [])
    await expect.poll(async () => (await it.look(lb))?.scopes[0]?.state).toBe('read')
    await it.put([1, 2], [1])
    await expect.poll(async () => (await it.look(lb))?.scopes[0]?.state).toBe('unread')
    await end()
  })
})
