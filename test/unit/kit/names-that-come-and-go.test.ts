/** What an adapter keeps of a name it forgets an hour after the name was used last: pods come and go for years. */
import type { MemberRef } from 'drainable/provider'
import { afterEach, expect, test } from 'vitest'
import { Memory } from '../../../src/adapters/citrix-adc/read/memory.js'
import { readOptions } from '../../../src/adapters/f5-bigip/options.js'
import { Hints } from '../../../src/adapters/f5-bigip/read/hints.js'
import { Rights } from '../../../src/adapters/f5-bigip/read/rights.js'
import { Resolver } from '../../../src/adapters/f5-bigip/read/target.js'
import { Vanished } from '../../../src/adapters/f5-bigip/read/vanished.js'
import { Device } from '../../../src/adapters/f5-bigip/session/device.js'
import type { Session } from '../../../src/adapters/f5-bigip/session/session.js'
import { Spending } from '../../../src/kit/look-cost.js'
import { systemClock } from '../../../src/provider/clock.js'
import { heap } from '../core/memory/heap.js'
import { ctx } from '../f5-bigip/rig.js'

const NAMES = 100_000
/** Of each name: without an end to them they take 100 and more. */
const BYTES = 30

const SETTINGS = readOptions({ url: 'https://bigip.example', username: 'u', password: 'p' })
const refOf = (i: number): MemberRef => ({ pool: '/Common/web', member: `pod-${i}:80` })

function rowOf(i: number, address = '10.0.0.1') {
  const fullPath = `/Common/pod-${i}:80`
  return { ...{ fullPath, node: `/Common/pod-${i}`, port: 80, address }, own: 'ready' } as never
}

type Use = (i: number) => void | Promise<void>

function resolver(): Use {
  const names = new Resolver('Common')
  return (i) => {
    const target = names.target(refOf(i))
    if (target.kind === 'member') names.find({ rows: [rowOf(i)], odd: [] }, target)
  }
}

function hints(): Use {
  const said = new Hints(new Rights(SETTINGS))
  return (i) => said.note(refOf(i), 'cut', 'connections were cut')
}

function vanished(): Use {
  const copies = new Vanished()
  return (i) => {
    const scopes = [{ scope: `bigip _auto_${i}:80` }] as never
    copies.note({ ref: refOf(i), present: true, own: 'ready', scopes } as never, i)
  }
}

function device(): Device {
  const session = { spending: new Spending(), get: () => Promise.resolve(undefined) }
  return new Device(session as unknown as Session, SETTINGS)
}

function attributes(): Use {
  const one = device()
  return async (i) => {
    await one.readPool(`/Common/pool-${i}`, ctx())
  }
}

function evidence(): Use {
  const one = device()
  return (i) => one.evidence.note(`/Common/node-${i}`, 'drain', ctx())
}

function counts(): Use {
  const memory = new Memory()
  const counted = { active: 1, queued: 0, arrivals: 1n as never }
  return (i) => memory.counted({ kind: 'service', name: `service-${i}` } as never, counted, i)
}

const real = systemClock.now.bind(systemClock)

afterEach(() => {
  systemClock.now = real
})

test.each([
  ['the names of members of a BIG-IP', resolver],
  ['what was done to members of a BIG-IP', hints],
  ['copies of FQDN templates of a BIG-IP', vanished],
  ['properties of pools of a BIG-IP', attributes],
  ['second evidence of nodes of a BIG-IP', evidence],
  ['counts of services of a Citrix ADC', counts],
])('%s take no memory an hour after their last use', async (_, begin) => {
  let now = 0
  systemClock.now = () => now
  const use = begin()
  await use(0)
  const before = await heap()
  for (let i = 1; i <= NAMES; i += 1) {
    now += 1_000
    await use(i)
  }
  expect(((await heap()) - before) / NAMES).toBeLessThan(BYTES)
  await use(0)
})

test('a name that is asked for goes on meaning the member that it meant', () => {
  let now = 0
  systemClock.now = () => now
  const names = new Resolver('Common')
  const target = { kind: 'member', ref: { pool: '/Common/web', member: '10.0.0.1:80' } } as never
  const find = (...rows: never[]) =>
    names.find({ rows, odd: [] }, { ...(target as object), pool: '/Common/web' } as never)
  const [meant, added] = [rowOf(1), rowOf(2)]
  find(meant)
  for (let day = 0; day < 48; day += 1) {
    now += 1_800_000
    expect(find(added, meant)?.row).toBe(meant)
  }
})
