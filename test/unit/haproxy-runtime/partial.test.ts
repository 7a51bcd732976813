import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { Change, DrainableProvider } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { change, context, hurried, rig, WEB1 } from './rig.js'

/** Masks of HAProxy: ready, forced drain, forced maintenance. */
const READY = 0
const DRAIN = 8
const MAINT = 1

const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const remove: Change = { kind: 'remove', ref: WEB1 }
const CHECKED = { pools: { web: [{ name: 'web1', check: true }, 'web2'] } } as const

async function hurriedly(lb: DrainableProvider, one: Change) {
  const [result] = await lb.apply([one], hurried())
  return result
}

describe('a refused removal', () => {
  test.each(['2.6', '3.2'] as const)(
    'of a busy server leaves it drained on %s',
    async (version) => {
      await using it = await rig({ version })
      await change(it.lb, hold)
      const end = await it.fake.occupy(WEB1)
      it.fake.fail({ match: /^wait/, how: 'status', body: 'Wait delay expired.' })
      const result = await hurriedly(it.lb, remove)
      expect(result).toMatchObject({
        status: 'rejected',
        error: { code: 'CONFLICT', retryable: true },
      })
      expect(it.fake.adminMask(WEB1)).toBe(DRAIN)
      expect(it.fake.load(WEB1)).toBe(1)
      await end()
      expect(await change(it.lb, remove)).toMatchObject({ status: 'applied' })
    },
  )

  test('of a server that others track leaves the server open', async () => {
    const api = [{ name: 'api1', track: 'web/web1' }]
    await using it = await rig({ pools: { ...CHECKED.pools, api } })
    const result = await change(it.lb, remove)
    expect(result).toMatchObject({
      status: 'rejected',
      error: { code: 'REJECTED', retryable: false },
    })
    expect(it.fake.adminMask(WEB1)).toBe(READY)
  })

  test('of a server found in maintenance leaves it there', async () => {
    await using it = await rig()
    await it.fake.setBehind(WEB1, 'maint')
    it.fake.fail({ match: /^del server/, how: 'status', times: 1 })
    expect(await change(it.lb, remove)).toMatchObject({ status: 'rejected' })
    expect(it.fake.adminMask(WEB1)).toBe(MAINT)
    expect(it.fake.requests.some(({ line }) => line.includes('set server'))).toBe(false)
  })

  test('leaves alone what another client changed meanwhile', async () => {
    await using it = await rig()
    await change(it.lb, hold)
    const meddle = (): void => {
      if (it.fake.adminMask(WEB1) === MAINT) void it.fake.setBehind(WEB1, 'ready')
    }
    const [result] = await it.lb.apply([remove], hurried(meddle))
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'CONFLICT' } })
    expect(it.fake.adminMask(WEB1)).toBe(READY)
  })

  test('whose server can not be put back is unknown', async () => {
    await using it = await rig()
    await change(it.lb, hold)
    it.fake.fail({ match: /^del server/, how: 'status', times: 1 })
    it.fake.fail({ match: /state drain/, how: 'status', times: 1 })
    const result = await change(it.lb, remove)
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'FORBIDDEN' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('could not be put back'))
  })

  test('leaves maintenance by way of weight 0 if a backup serves', async () => {
    const web = ['web1', { name: 'spare', backup: true }]
    await using it = await rig({ pools: { web } })
    await change(it.lb, hold)
    it.fake.fail({ match: /^del server/, how: 'status', times: 1 })
    const from = it.fake.requests.length
    expect(await change(it.lb, remove)).toMatchObject({ status: 'rejected' })
    const last = it.fake.requests.slice(from).findLast(({ line }) => /set server/.test(line))
    expect(last?.line).toContain('weight 0%;set server web/web1 state ready;')
    expect(it.fake.adminMask(WEB1)).toBe(DRAIN)
  })
})

describe('an addition whose opening is refused', () => {
  const ref = { pool: 'web', member: 'web9' }
  const add: Change = { kind: 'add', ref, address: '10.0.0.9', port: 80 }

  test('leaves no server behind', async () => {
    await using it = await rig()
    it.fake.fail({ match: /state ready/, how: 'status', times: 1 })
    expect(await change(it.lb, add)).toMatchObject({
      status: 'rejected',
      error: { code: 'FORBIDDEN' },
    })
    expect(it.fake.adminMask(ref)).toBeUndefined()
  })

  test('is unknown if the server stays', async () => {
    await using it = await rig()
    it.fake.fail({ match: /state ready/, how: 'status', times: 1 })
    it.fake.fail({ match: /^del server/, how: 'status', times: 1 })
    expect(await change(it.lb, add)).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
    expect(it.fake.adminMask(ref)).toBe(MAINT)
  })
})

describe('leaving maintenance with one refused command', () => {
  const web = ['web1', { name: 'spare', backup: true }]
  const restore: Change = { kind: 'restore', ref: WEB1, expect: 'maint', to: 'ready' }

  test('is done if the state shows it', async () => {
    await using it = await rig({ pools: { web } })
    await it.fake.setBehind(WEB1, 'maint')
    it.fake.fail({
      match: /weight 0%/,
      how: 'status',
      body: 'Relative weight must be positive.',
      times: 1,
    })
    expect(await change(it.lb, restore)).toMatchObject({ status: 'applied' })
    expect(it.fake.adminMask(WEB1)).toBe(READY)
  })

  test('is refused if nothing was changed', async () => {
    await using it = await rig({ pools: { web } })
    await it.fake.setBehind(WEB1, 'maint')
    it.fake.fail({ match: /state ready/, how: 'status', times: 1 })
    expect(await change(it.lb, restore)).toMatchObject({
      status: 'rejected',
      error: { code: 'FORBIDDEN' },
    })
    expect(it.fake.adminMask(WEB1)).toBe(MAINT)
  })

  test('is unknown if the server is open without its weight', async () => {
    await using it = await rig({ pools: { web } })
    await it.fake.setBehind(WEB1, 'maint')
    it.fake.fail({ match: /weight 100%/, how: 'status', times: 1 })
    expect(await change(it.lb, restore)).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
  })
})

test('a cut continues when an old worker ends in the middle of it', async () => {
  await using it = await rig({ master: true })
  const end = await it.fake.occupy(WEB1)
  await it.fake.reload()
  await using lb = haproxyRuntime({ socket: it.fake.socket, master: it.fake.master! })
  await lb.observe([WEB1], context())
  await end()
  await it.fake.occupy(WEB1)
  expect(await change(lb, { kind: 'terminate', ref: WEB1 })).toEqual({
    ref: WEB1,
    status: 'applied',
    terminated: 1,
    atMost: true,
  })
})
