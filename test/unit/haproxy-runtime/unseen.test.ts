import { describe, expect, test } from 'vitest'
import type { ProcessInfo } from '../../../src/adapters/haproxy-runtime/codec/info.js'
import type { Facts } from '../../../src/adapters/haproxy-runtime/session/facts.js'
import { readOptions } from '../../../src/adapters/haproxy-runtime/options.js'
import { noteStandstill, toProcess } from '../../../src/adapters/haproxy-runtime/session/process.js'
import { Standstill } from '../../../src/adapters/haproxy-runtime/session/standstill.js'
import { Unseen } from '../../../src/adapters/haproxy-runtime/session/unseen.js'

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
  const info = infoOf(1, 100)
  const facts = { info, level: 'admin', mworker: false, neverReloaded: false } as Facts
  unseen.learn(facts, false, 100)
  unseen.note(100, 0)
  return { unseen, first: toProcess(info, 100) }
}

describe('a process replaced before the first look', () => {
  test('has ended by hard-stop-after, and a margin', () => {
    const { unseen } = looked({ within: '1s' })
    unseen.note(2_900, 0)
    expect(unseen.blindness()).toMatchObject({ refuses: true })
    unseen.note(3_000, 0)
    expect(unseen.blindness()).toBeUndefined()
  })

  test('ends later by the time for which HAProxy stood still', () => {
    const { unseen, first } = looked({ within: '1s' })
    const stood = noteStandstill(first, 7_100, 100, 0)
    expect(stood).toBe(7_000)
    unseen.note(7_100, stood)
    expect(unseen.blindness()).toMatchObject({ refuses: true })
    // Counted once.
    expect(noteStandstill(first, 10_000, 3_000, 0)).toBe(0)
    unseen.note(10_000, 0)
    expect(unseen.blindness()).toBeUndefined()
  })
})

describe('a silent process', () => {
  test('stands still from the first question on, through failures', () => {
    const still = new Standstill()
    still.ask(1_000)
    still.fail(6_000)
    still.ask(6_500)
    expect(still.answer(8_000)).toBe(7_000)
    still.ask(8_100)
    expect(still.answer(8_200)).toBe(0)
  })

  test('is not asked between two drains', () => {
    const still = new Standstill()
    still.ask(1_000)
    still.fail(2_000)
    still.ask(60_000)
    expect(still.answer(60_010)).toBe(1_010)
  })
})

describe('a master whose socket is not known', () => {
  test('refuses a drain unless HAProxy tells that it never reloaded', () => {
    const unseen = new Unseen(readOptions({ socket: SOCKET }), 'it')
    const facts = { info: infoOf(1, 100), level: 'admin', mworker: true, neverReloaded: true }
    unseen.learn(facts as Facts, false, 100)
    expect(unseen.blindness()).toMatchObject({ refuses: false })
    unseen.succeed(200)
    expect(unseen.blindness()).toMatchObject({ refuses: true })
  })
})

describe('a process that a reload has replaced', () => {
  test('has ended so long after its successor was met, not after its start', () => {
    const { unseen } = looked({ within: '1s' })
    // Started at 1 s; it told the other one to stop only before its first answer, at 16 s.
    unseen.succeed(16_000)
    unseen.note(18_999, 0)
    expect(unseen.blindness()).toMatchObject({ refuses: true })
    expect(unseen.knowsAll).toBe(false)
    unseen.note(19_000, 0)
    expect(unseen.blindness()).toBeUndefined()
    expect(unseen.knowsAll).toBe(true)
  })
})
