import { expect, test } from 'vitest'
import type { LoadScope } from 'drainable/provider'
import { ScopeMemory } from '../../../src/adapters/haproxy-runtime/read/scopes.js'

const web1 = { pool: 'web', member: 'web1' }
const web2 = { pool: 'web', member: 'web2' }

function scope(active: number, state: LoadScope['state'] = 'read'): LoadScope {
  return { scope: 'old', incarnation: '1', state, sampledAt: 0, active, queued: 0, inForce: true }
}

function remember(memory: ScopeMemory, at: number, ref: typeof web1, reading: LoadScope): void {
  memory.look([ref], at)
  memory.complete(ref, [reading], () => false, true)
}

test('work of a member under drain keeps a process from being settled', () => {
  const memory = new ScopeMemory()
  remember(memory, 1_000, web1, scope(2))
  remember(memory, 1_900, web2, scope(0))
  expect(memory.isSettled('old')).toBe(false)
  remember(memory, 2_000, web1, scope(0))
  expect(memory.isSettled('old')).toBe(true)
  remember(memory, 2_100, web2, scope(0, 'unread'))
  expect(memory.isSettled('old')).toBe(false)
})

test('a member nobody looks at any more does not, whatever it held at last', () => {
  const memory = new ScopeMemory()
  remember(memory, 1_000, web1, scope(2))
  remember(memory, 4_000, web2, scope(0))
  expect(memory.isSettled('old')).toBe(true)
})
