import { isNamed, parseRaw } from '../../../src/adapters/haproxy-dataplane/codec/raw.js'
import { MovedAddresses } from '../../../src/adapters/haproxy-dataplane/read/doubts.js'
import type { RuntimeView } from '../../../src/adapters/haproxy-dataplane/read/read.js'
import { present, rig } from '../../support/dataplane.js'
import { describe, expect, test } from 'vitest'

const WEB1 = { pool: 'web', member: 'web1' }

/** A look at backend `web`: the address of each server, and what is in flight to it. */
function view(
  servers: Readonly<Record<string, readonly [address: string, scur: number]>>,
  version = '3.2.1',
) {
  const found = Object.entries(servers).map(([name, [address, scur]]) => [
    name,
    {
      row: { address: `${address}:80`, scur, qcur: 0 },
      server: undefined,
      verdict: { own: 'ready' },
    },
  ])
  const pools = new Map([['web', new Map(found as never)]])
  return { info: { version }, pools } as unknown as RuntimeView
}

const CONFIGURED = { named: false } as never
const NAMED = { named: true } as never

describe('work at the address of a server', () => {
  const busy = view({ web1: ['10.0.0.1', 0], web2: ['10.0.0.2', 3] })

  test('stands in its row if no server has moved', () => {
    const moved = new MovedAddresses()
    moved.note(busy)
    expect(moved.why(WEB1, CONFIGURED, busy)).toBeUndefined()
  })

  test('may stand in another row if its address comes from DNS', () => {
    expect(new MovedAddresses().why(WEB1, NAMED, busy)).toContain('its address comes from DNS')
  })

  test('may stand in another row if it is not known where its address comes from', () => {
    const moved = new MovedAddresses()
    const why = moved.why(WEB1, { named: 'unknown' }, busy)
    expect(why).toContain("configuration can't be read")
    expect(why).toContain('may come from DNS')
  })

  test('stands in no other row if no other server is at work', () => {
    const idle = view({ web1: ['10.0.0.1', 5], web2: ['10.0.0.2', 0] })
    expect(new MovedAddresses().why(WEB1, NAMED, idle)).toBeUndefined()
  })

  test('may come over old connections before HAProxy 3.0', () => {
    const idle = { web1: ['10.0.0.1', 0], web2: ['10.0.0.2', 0] } as const
    const why = (version: string) => new MovedAddresses().why(WEB1, NAMED, view(idle, version))
    expect(why('2.6.12')).toContain('HAProxy before 3.0 goes on sending requests')
    expect(why('3.0.11')).toBeUndefined()
    expect(why('unknown')).toBeUndefined()
    const alone = view({ web1: ['10.0.0.1', 0] }, '2.6.12')
    expect(new MovedAddresses().why(WEB1, NAMED, alone)).toBeUndefined()
  })

  test('may stand in another row once an address was seen to move', () => {
    const moved = new MovedAddresses()
    moved.note(busy)
    const now = view({ web1: ['10.0.0.2', 0], web2: ['10.0.0.3', 3] })
    moved.note(now)
    expect(moved.why(WEB1, CONFIGURED, now)).toContain('was seen to change its address')
    expect(moved.why({ pool: 'api', member: 'web1' }, CONFIGURED, now)).toBeUndefined()
  })

  test('stands in its row after a server came or went', () => {
    const moved = new MovedAddresses()
    for (const look of [view({ web1: ['10.0.0.1', 0] }), busy]) moved.note(look)
    expect(moved.why(WEB1, CONFIGURED, busy)).toBeUndefined()
  })
})

describe('an address in the configuration', () => {
  test.each(['web.test', 'ipv4@web.test', 'localhost', 'ipv6@web.test', 'web.test:80'])(
    '%s is a name',
    (text) => {
      expect(isNamed(text)).toBe(true)
    },
  )

  test.each(['10.0.0.1', '::1', '[::1]', 'ipv6@[::1]', 'unix@/run/web.sock', '/run/web', ''])(
    '%s is none',
    (text) => {
      expect(isNamed(text)).toBe(false)
    },
  )

  test('is found in the text of a template and of a listen section', () => {
    const file = parseRaw(`
listen web
  server web1 web.test:80
  server web2 [::1]:80
backend slots
  server-template slot 3 web.test:80
  server-template dry 3 10.0.0.1:80
`)!
    expect(file.server('web', 'web1')?.named).toBe(true)
    expect(file.server('web', 'web2')?.named).toBe(false)
    expect(file.server('slots', 'slot1')?.named).toBe(true)
    expect(file.server('slots', 'dry1')?.named).toBe(false)
  })
})

test('a server of a backend in mode log is not verified', async () => {
  const config = `global
defaults
backend web
  mode log
  server web1 127.0.0.1:9000
`
  await using r = await rig({ config })
  expect((await present(r.lb, WEB1)).unverified).toContain('mode log')
})

describe.concurrent('a slot of a template', () => {
  const config = `global
  hard-stop-after 5s
defaults
backend slots
  server-template slot 3 web.test:9000
`
  const SLOT = { pool: 'slots', member: 'slot2' }

  test('is not verified while other slots are at work', async () => {
    await using r = await rig({ config, uptime: 100 }, { oldWorkers: { within: '5s' } })
    expect((await present(r.lb, SLOT)).unverified).toBeUndefined()
    await r.fake.occupy({ pool: 'slots', member: 'slot1' })
    const { unverified } = await present(r.lb, SLOT)
    expect(unverified).toContain('its address comes from DNS')
  })
})
