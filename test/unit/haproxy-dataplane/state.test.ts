import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  healthOf,
  judge,
  serving,
  splitAddress,
} from '../../../src/adapters/haproxy-dataplane/read/state.js'
import { change, look, present, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const WEB2 = { pool: 'web', member: 'web2' }

/** What the API makes of HAProxy's mask: the decimal text, read as if it were hexadecimal. */
function misread(mask: number): 'ready' | 'drain' | 'maint' {
  const value = Number.parseInt(String(mask), 16)
  return value & 0x23 ? 'maint' : value & 0x18 ? 'drain' : 'ready'
}

/** The truth. */
function truth(mask: number): 'ready' | 'drain' | 'maint' {
  return mask & 0x01 ? 'maint' : mask & 0x08 ? 'drain' : 'ready'
}

/** What the server does, whoever set it so. */
function inForce(mask: number): 'ready' | 'drain' | 'maint' {
  return mask & 0x23 ? 'maint' : mask & 0x18 ? 'drain' : 'ready'
}

/** The status text that HAProxy prints. */
function status(mask: number, down: boolean): string {
  if (mask & 0x20) return 'MAINT (resolution)'
  if (mask & 0x02) return 'MAINT (via web/parent)'
  if (mask & 0x01) return 'MAINT'
  if (down) return 'DOWN'
  return mask & 0x18 ? 'DRAIN' : 'UP'
}

describe('own state', () => {
  const masks = Array.from({ length: 128 }, (_, mask) => mask)

  test('is true or in force, or not told, for any mask', () => {
    for (const mask of masks) {
      // `disabled` in the file, made ready, its name set on the command line and not resolved: as 40
      if (mask === 100) continue
      for (const down of [false, true]) {
        const inherits = (mask & 0x12) !== 0
        const tracked = inherits ? 'web/parent' : undefined
        const said = judge({ status: status(mask, down), tracked }, misread(mask))
        if (said.own === 'unknown') continue
        // Its own state is hidden behind the inherited one, which is told. Where it inherits a drain and a
        // maintenance, the API reads the drain as its own.
        const both = (mask & 0x12) === 0x12 && truth(mask) === 'ready'
        const is = said.hidden === true ? inForce(mask) : both ? 'drain' : truth(mask)
        expect(`${mask} ${said.own}`).toBe(`${mask} ${is}`)
      }
    }
  })

  test('is true by the status alone, or not told, for any mask', () => {
    for (const mask of masks) {
      for (const down of [false, true]) {
        const tracked = (mask & 0x12) !== 0 ? 'web/parent' : undefined
        const said = judge({ status: status(mask, down), tracked }, undefined)
        if (said.doubt !== undefined) continue
        expect(`${mask} ${said.own}`).toBe(`${mask} ${truth(mask)}`)
      }
    }
  })

  test('is known for every mask behind an inherited maintenance', () => {
    for (const mask of masks.filter((each) => (each & 0x22) !== 0)) {
      const tracked = (mask & 0x12) !== 0 ? 'web/parent' : undefined
      const { own } = judge({ status: status(mask, false), tracked }, misread(mask))
      expect(`${mask} ${own}`).not.toBe(`${mask} unknown`)
    }
  })

  // The API is asked for the status first, and for its admin_state by another request.
  test.each([
    ['MAINT (resolution)', undefined, 'drain', 'drain'],
    ['MAINT (via web/parent)', 'web/parent', 'ready', 'unknown'],
  ] as const)(
    'may change between two requests: %s of %s, then %s',
    (words, tracked, admin, own) => {
      const said = judge({ status: words, tracked }, admin)
      expect(said).toMatchObject({ own })
      expect(said.hidden).toBeUndefined()
    },
  )

  test('is told apart for the everyday masks', () => {
    const said = (mask: number, down = false) =>
      judge({ status: status(mask, down), tracked: undefined }, misread(mask)).own
    expect([0, 4, 8, 12, 1, 5].map((mask) => said(mask))).toEqual([
      'ready',
      'ready',
      'drain',
      'drain',
      'maint',
      'maint',
    ])
    expect([0, 4, 8].map((mask) => said(mask, true))).toEqual(['ready', 'ready', 'drain'])
    expect(said(12, true)).toBe('unknown')
  })

  test('is unknown and named in a contradiction', () => {
    const verdict = judge({ status: 'UP', tracked: undefined }, 'maint')
    expect(verdict.own).toBe('unknown')
    expect(verdict.doubt).toContain("status 'UP', admin_state 'maint'")
    expect(judge({ status: 'DRAIN', tracked: undefined }, 'ready').own).toBe('unknown')
    expect(judge({ status: 'SOMETHING NEW', tracked: undefined }, 'ready').own).toBe('unknown')
  })

  test('is told from an inherited state', async () => {
    await using r = await rig({
      pools: { web: ['web1', { name: 'web2', track: 'web/web1' }] },
    })
    await r.fake.setBehind(WEB1, 'drain')
    const web2 = { pool: 'web', member: 'web2' }
    expect(await present(r.lb, web2)).toMatchObject({
      own: 'drain',
      inherited: 'drain',
      sealed: false,
      serves: false,
    })
    expect((await present(r.lb, web2)).hints?.join()).toContain('web/web1')
    await r.fake.setBehind(WEB1, 'maint')
    expect(await present(r.lb, web2)).toMatchObject({
      own: 'maint',
      inherited: 'maint',
      sealed: false,
    })
    await r.fake.setBehind(WEB1, 'ready')
    expect(await present(r.lb, web2)).toMatchObject({ own: 'ready', serves: true })
  })

  test('is never in force if it is unknown', async () => {
    await using r = await rig({ pools: { web: ['web1', { name: 'web2', track: 'web/web1' }] } })
    r.fake.setMask(WEB2, 80)
    const reading = await look(r.lb, WEB2)
    expect(reading).toMatchObject({ own: 'unknown', serves: false })
    expect(reading.scopes.every((scope) => !scope.inForce)).toBe(true)
  })

  test('is ready with a name from the command line, which the API misreads', async () => {
    await using r = await rig()
    r.fake.setMask(WEB1, 64)
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
    const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
    expect((await change(r.lb, hold)).status).toBe('applied')
    const back = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
    expect((await change(r.lb, back)).status).toBe('applied')
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
  })
})

describe('health', () => {
  const check = (health: number, fall = 3, said = 'L7OK') => ({
    status: said,
    health,
    rise: 2,
    fall,
  })
  const agent = (health: number, said = 'L7OK') => ({
    ...{ status: said, health, rise: 1, fall: 1 },
    ...{ said: '', setsState: said === 'CHECKED' },
  })
  test.each([
    ['UP', check(4), undefined, 'up'],
    ['UP 2/3', check(3), undefined, 'up'],
    ['UP 1/3', check(2), undefined, 'unknown'],
    ['UP 1/3', check(2), agent(1), 'unknown'],
    ['DRAIN 1/3', check(2), undefined, 'unknown'],
    ['DRAIN', check(4), undefined, 'up'],
    ['DRAIN', undefined, undefined, 'unchecked'],
    ['UP', check(2, 1), undefined, 'up'],
    ['UP', check(2, 1, '* L7OK'), undefined, 'up'],
    ['UP', check(2, 1, 'INI'), undefined, 'unknown'],
    ['UP', check(2, 1, 'L4CON'), undefined, 'unknown'],
    ['DRAIN (agent)', undefined, agent(1), 'up'],
    ['DRAIN (agent)', undefined, agent(1, 'CHECKED'), 'up'],
    ['DRAIN (agent)', undefined, agent(1, 'INI'), 'unknown'],
    ['DOWN (agent)', undefined, agent(0), 'down'],
    ['DOWN 1/2', check(1), undefined, 'down'],
    ['NOLB', check(4), undefined, 'down'],
    ['MAINT', undefined, undefined, 'unknown'],
    ['no check', undefined, undefined, 'unchecked'],
  ] as const)('%s with %o and %o is %s', (text, own, ofAgent, health) => {
    expect(healthOf({ status: text, tracked: undefined, check: own, agent: ofAgent })).toBe(health)
  })

  // HAProxy shows no counts of a server that tracks another one.
  test.each([
    ['UP', 'up'],
    ['UP 1/3', 'unknown'],
    ['DRAIN', 'up'],
    ['DRAIN 1/3', 'unknown'],
    ['DOWN', 'down'],
    ['no check', 'unchecked'],
    ['MAINT (via web/web1)', 'unknown'],
  ] as const)('of a server that tracks another one: %s is %s', (status, health) => {
    const cells = { status, tracked: 'web/web1', check: undefined, agent: undefined }
    expect(healthOf(cells)).toBe(health)
  })

  test('is not up before a check passed, for a server that left maint', async () => {
    // The checks of the fake pass by this clock.
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    await using r = await rig({ pools: { web: [{ name: 'web1', check: true }] } })
    expect((await present(r.lb, WEB1)).health).toBe('up')
    await r.fake.setBehind(WEB1, 'maint')
    expect((await present(r.lb, WEB1)).health).toBe('unknown')
    await r.fake.setBehind(WEB1, 'drain')
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'drain', health: 'unknown' })
    vi.setSystemTime(Date.now() + 2_000)
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'drain', health: 'up' })
  })
})

test('the status text tells who serves', () => {
  expect(['UP', 'UP 1/3', 'no check'].every(serving)).toBe(true)
  expect(['DOWN', 'DRAIN', 'MAINT', 'NOLB', 'UPSIDE'].some(serving)).toBe(false)
})

test.each([
  ['127.0.0.1:80', '127.0.0.1', 80],
  ['[2001:db8::1]:8080', '2001:db8::1', 8080],
])('an address is split into host and port: %s', (text, address, port) => {
  expect(splitAddress(text)).toEqual({ address, port })
})

test.each(['/run/app.sock', 'unix', '10.0.0.1', ''])('no port is made up for %j', (text) => {
  expect(splitAddress(text)).toBeUndefined()
})
