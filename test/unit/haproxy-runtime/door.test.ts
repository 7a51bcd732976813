import { expect, test } from 'vitest'
import { Door } from '../../../src/adapters/haproxy-runtime/session/process.js'
import type { ShownProcess } from '../../../src/adapters/haproxy-runtime/read/shown.js'
import { context } from './rig.js'

test('an old process that does not stop yet has its connections', async () => {
  const door = new Door()
  const info = { stopping: false, connections: 3 }
  const never = { run: () => Promise.reject(new Error('nothing is asked')) }
  await door.note({ info } as ShownProcess, true, never, context())
  expect(door).toMatchObject({ left: 3, closed: false, stopping: false })
})
