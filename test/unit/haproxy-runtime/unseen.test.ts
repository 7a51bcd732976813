import type { ProcessInfo } from '../../../src/adapters/haproxy-runtime/codec/replies.js'
import { readOptions } from '../../../src/adapters/haproxy-runtime/options.js'
import type { Facts } from '../../../src/adapters/haproxy-runtime/session/master.js'
import { Unseen } from '../../../src/adapters/haproxy-runtime/session/processes.js'
import { describe, expect, test } from 'vitest'

const SOCKET = { host: '192.0.2.1', port: 9_999 }

const infoOf = (pid: number, lived: number): ProcessInfo => ({
  version: '3.0.11',
  node: 'n',
  pid,
  start: String(pid),
  lived,
  stopping: false,
  connections: 0,
})

/** One that has looked at a process without a master, started at 0, at 100 ms. */
function looked(oldWorkers: 'wait' | { within: '1s' }) {
  const unseen = new Unseen(readOptions({ socket: SOCKET, oldWorkers }), 'it')
  const facts = { info: infoOf(1, 100), level: 'admin', mworker: false, neverReloaded: false }
  unseen.learn(facts as Facts, false, 100)
  /** A look, by our clock and by that of the process; answered at once if nothing else is said. */
  const look = (at: number, lived = at, answeredAt = at): boolean => {
    unseen.note(infoOf(1, lived), at, answeredAt)
    return unseen.blindness()?.refuses === true
  }
  return { unseen, look }
}

describe('a process replaced before the first look', () => {
  test('has ended by hard-stop-after, and a margin', () => {
    const { look } = looked({ within: '1s' })
    expect(look(2_900)).toBe(true)
    expect(look(3_000)).toBe(false)
  })

  test('ends later by the time that its own clock leaves out', () => {
    const { look } = looked({ within: '1s' })
    expect(look(7_100, 100)).toBe(true)
    expect(look(9_999, 2_999)).toBe(true)
    expect(look(10_000, 3_000)).toBe(false)
  })

  test('ends later by the time without an answer, which its clock may count', () => {
    const { look } = looked({ within: '1s' })
    expect(look(1_000, 8_000, 8_000)).toBe(true)
    expect(look(9_999)).toBe(true)
    expect(look(10_000)).toBe(false)
  })

  test('ends later by the time in which looks failed', () => {
    const { unseen, look } = looked({ within: '1s' })
    expect(look(1_000)).toBe(true)
    unseen.fail()
    expect(look(8_000)).toBe(true)
    expect(look(9_999)).toBe(true)
    expect(look(10_000)).toBe(false)
  })
})

describe('a master whose socket is not known', () => {
  test('refuses a drain unless HAProxy tells that it never reloaded', () => {
    const unseen = new Unseen(readOptions({ socket: SOCKET }), 'it')
    const facts = { info: infoOf(1, 100), level: 'admin', mworker: true, neverReloaded: true }
    unseen.learn(facts as Facts, false, 100)
    expect(unseen.blindness()).toMatchObject({ refuses: false })
    unseen.succeed()
    expect(unseen.blindness()).toMatchObject({ refuses: true })
  })
})

describe('a process that a reload has replaced', () => {
  test('has ended so long after its successor was met, not after its start', () => {
    const { unseen } = looked({ within: '1s' })
    const look = (at: number): void => unseen.note(infoOf(2, at - 1_000), at, at)
    // Started at 1 s; it told the other one to stop only before its first answer, at 16 s.
    unseen.succeed()
    look(16_000)
    look(18_999)
    expect(unseen.blindness()).toMatchObject({ refuses: true })
    expect(unseen.knowsAll).toBe(false)
    look(19_000)
    expect(unseen.blindness()).toBeUndefined()
    expect(unseen.knowsAll).toBe(true)
  })
})
