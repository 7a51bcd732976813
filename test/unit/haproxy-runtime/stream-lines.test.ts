import { startDrain } from 'drainable'
import type { LoadScope } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import {
  countUncounted,
  isStreamList,
} from '../../../src/adapters/haproxy-runtime/codec/streams.js'
import type { StatRow } from '../../../src/adapters/haproxy-runtime/codec/stat.js'
import type { ShownServer } from '../../../src/adapters/haproxy-runtime/read/shown.js'
import { StreamLines } from '../../../src/adapters/haproxy-runtime/read/stream-lines.js'
import type { Channel } from '../../../src/adapters/haproxy-runtime/session/channel.js'
import { change, context, type Rig, rig, WEB1, WEB2 } from './rig.js'

const LIMITED = { pools: { web: [{ name: 'web1', maxconn: 5 }, 'web2'] } }

/** Looks at one member, `at` by the clock of the calls. */
async function look({ lb }: Rig, at: number, ref = WEB1): Promise<LoadScope> {
  const clock = { ...context().clock, now: () => at }
  const { readings } = await lb.observe([ref], { ...context(), clock })
  return readings[0]!.scopes[0]!
}

function asked({ fake }: Rig): number {
  return fake.requests.filter(({ line }) => line.includes('show sess')).length
}

function drained({ lb }: Rig): Promise<unknown> {
  return change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
}

describe.each(['2.6', '3.0', '3.2'] as const)('HAProxy %s', (version) => {
  test.each(['slot', 'retry'] as const)('a request before its %s is queued', async (why) => {
    await using at = await rig({ version })
    await drained(at)
    const run = await at.fake.hide(WEB1, why)
    expect(await look(at, 0)).toMatchObject({ active: 0, queued: 1 })
    await run()
    const after = await look(at, 5_000)
    expect(after).toMatchObject({ active: 0, queued: 0 })
    expect((await look(at, 7_000)).queued).toBe(0)
  })
})

describe('the list of streams', () => {
  test('is not asked for where no request can hide', async () => {
    await using at = await rig()
    await drained(at)
    expect(await look(at, 0)).not.toHaveProperty('mayHide')
    expect(asked(at)).toBe(0)
  })

  test('is asked for once where it has no request of the server', async () => {
    await using at = await rig(LIMITED)
    await drained(at)
    for (const now of [0, 10, 5_000]) expect(await look(at, now)).not.toHaveProperty('mayHide')
    expect(asked(at)).toBe(1)
  })

  test('is not asked for while the server is ready or busy', async () => {
    await using at = await rig(LIMITED)
    expect(await look(at, 0)).toMatchObject({ mayHide: true })
    await at.fake.occupy(WEB1)
    await drained(at)
    expect(await look(at, 5_000)).toMatchObject({ active: 1, mayHide: true })
    expect(asked(at)).toBe(0)
  })

  test('is not asked for soon after an arrival', async () => {
    await using at = await rig(LIMITED)
    await drained(at)
    await look(at, 0)
    const end = await at.fake.occupy(WEB1)
    await end()
    expect(await look(at, 100)).toMatchObject({ mayHide: true })
    expect(await look(at, 900)).toMatchObject({ mayHide: true })
    expect(asked(at)).toBe(1)
    expect(await look(at, 1_000)).not.toHaveProperty('mayHide')
    expect(asked(at)).toBe(2)
  })

  test('is asked for again once the server was open', async () => {
    await using at = await rig(LIMITED)
    await drained(at)
    await look(at, 0)
    await at.fake.setBehind(WEB1, 'ready')
    expect(await look(at, 10)).toMatchObject({ mayHide: true })
    await at.fake.setBehind(WEB1, 'drain')
    expect(await look(at, 500)).not.toHaveProperty('mayHide')
    expect(asked(at)).toBe(2)
  })

  test('is asked for again while it has a request, not at every look', async () => {
    await using at = await rig(LIMITED)
    await drained(at)
    const run = await at.fake.hide(WEB1, 'slot')
    for (const now of [0, 10, 90]) expect((await look(at, now)).queued).toBe(1)
    expect(asked(at)).toBe(1)
    expect((await look(at, 100)).queued).toBe(1)
    expect(asked(at)).toBe(2)
    await run()
  })

  test('is asked for once for several servers', async () => {
    const both = { web: ['web1', 'web2'].map((name) => ({ name, maxconn: 5 })) }
    await using at = await rig({ pools: both })
    for (const ref of [WEB1, WEB2]) await change(at.lb, { kind: 'hold', ref, to: 'drain' })
    await at.lb.observe([WEB1, WEB2], context())
    expect(asked(at)).toBe(1)
  })

  test('names its backend alone', async () => {
    await using at = await rig(LIMITED)
    await drained(at)
    await look(at, 0)
    const [request] = at.fake.requests.filter(({ line }) => line.includes('show sess'))
    expect(request?.line).toContain('show sess backend web')
  })

  test('that is refused leaves idle unverified', async () => {
    await using at = await rig({ ...LIMITED, version: '2.6' })
    at.fake.fail({ match: /^show sess/, how: 'status' })
    await using run = startDrain(at.lb, WEB1, { timeout: '30s' })
    const [member] = (await run.done).members
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(member?.why[0]?.text).toContain('the streams could not be listed')
  })
})

describe('streams of a server whose row was at zero', () => {
  /** One line of `show sess`. */
  const line = (srv: string, state: number, task = '00', pointer = '0x7f91'): string =>
    `${pointer}: proto=tcpv4 src=1.2.3.4:5 fe=f be=web srv=${srv} ts=${task} epoch=0 age=0s calls=2 scf=[8,482h,fd=20,rex=,wex=] scb=[${state},1811h,fd=-1,rex=,wex=] exp=2s rc=0 c_exp=\n`

  const row = { active: 0, queued: 0, arrivals: 1, mayHide: true } as StatRow

  /** How many are hidden after each of these lists, the second one and later 0.1 s after the one before. */
  async function hidden(...lists: readonly string[]): Promise<readonly number[]> {
    const lines = new StreamLines()
    const shown = { ref: WEB1, row, own: 'drain' } as ShownServer
    const counts: number[] = []
    for (const [at, list] of lists.entries()) {
      const channel = { run: () => Promise.resolve({ replies: [list] }) } as unknown as Channel
      const clock = { ...context().clock, now: () => at * 100 }
      await lines.note([shown], false, channel, { ...context(), clock })
      expect(lines.mayHide(WEB1, row)).toBe(false)
      counts.push(lines.hidden(WEB1, row))
    }
    return counts
  }

  test.each([
    ['queued', 'web1', 2, 1],
    ['before a retry', 'web1', 3, 1],
    ['connecting', 'web1', 5, 1],
    ['connected since', 'web1', 8, 1],
    ['closing', 'web1', 9, undefined],
    ['queued for any server', '<none>', 2, undefined],
    ['not yet a request', '<none>', 0, undefined],
  ])('%s', (_, srv, state, count) => {
    const [counted] = countUncounted(line(srv, state)).values()
    expect(counted).toBe(count)
  })

  // The number of those that still wait changes between the row and the list.
  test("that left the queue of the backend are any server's, others not", async () => {
    expect(await hidden(line('<none>', 2).repeat(3) + line('<none>', 2, '2004', '0x7f92'))).toEqual(
      [1],
    )
  })

  // In a busy backend one of another server is in nearly every list.
  test.each([
    ['connects to another server', line('web2', 5), 0],
    ['is with another server', line('web2', 8), 0],
    ['is over', '', 0],
    ['waits for any server', line('<none>', 2), 0],
    ['is with this server, after its row was read', line('web1', 8), 1],
  ])('that left the queue of the backend: one %s in the next list', async (_, then, count) => {
    expect(await hidden(line('<none>', 2, '2004'), then)).toEqual([1, count])
  })

  // In a saturated backend there is one in each list; a pointer goes to the next stream.
  test('that left the queue of the backend count if they are in each list', async () => {
    const stays = line('<none>', 2, '2004', '0x7f90')
    const slot = line('<none>', 2, '2004')
    expect(await hidden(stays + slot, stays + line('<none>', 2), stays + slot)).toEqual([2, 1, 1])
  })

  test('a refusal is no list', () => {
    expect(isStreamList('Permission denied\n')).toBe(false)
    expect(isStreamList('')).toBe(true)
    expect(isStreamList(line('web1', 2))).toBe(true)
  })
})
