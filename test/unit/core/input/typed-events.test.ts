import { once, type EventEmitter } from 'node:events'
import { expect, test, vi } from 'vitest'
import { startDrain, withEvents, type DrainEvent } from 'drainable'
import { setUp, web1 } from '../set-up.js'

const ignore = (): void => undefined

/** What `events.once` of Node takes: its type wants the whole class, its code three methods. */
const asEmitter = (emitter: unknown): EventEmitter => emitter as EventEmitter

test('once hears one event, on hears every one, and off ends it', async () => {
  const { clock, lb } = setUp()
  const run = startDrain(lb, web1, { clock, seal: false })
  const heard: string[] = []
  const unwanted = vi.fn()
  run
    .on('phase', ({ to }) => heard.push(`on ${to}`))
    .once('phase', ({ to }) => heard.push(`once ${to}`))
    .once('idle', unwanted)
    .off('idle', unwanted)
    .on('idle', unwanted)
    .removeListener('idle', unwanted)
  await clock.runUntil(run.done)
  expect(heard).toEqual(['on draining', 'once draining', 'on idle'])
  expect(unwanted).not.toHaveBeenCalled()
  await run.release()
})

test('a listener of both on and once hears the first event twice', async () => {
  const { clock, lb } = setUp()
  const run = startDrain(lb, web1, { clock, seal: false })
  const heard: string[] = []
  const listener = ({ to }: { to: string }): void => void heard.push(to)
  run.on('phase', listener).once('phase', listener)
  await clock.runUntil(run.done)
  expect(heard).toEqual(['draining', 'draining', 'idle'])
  await run.release()
})

test("Node's events.once waits for an event of a handle", async () => {
  const { clock, lb } = setUp()
  const run = startDrain(lb, web1, { clock })
  const idle = once(asEmitter(run), 'idle') as Promise<[Extract<DrainEvent, { type: 'idle' }>]>
  await clock.runUntil(run.done)
  const [event] = await idle
  expect(event.proof.text).toContain('0 in flight')
  await run.release()
})

test('an events.once that is given up leaves no listener behind', async () => {
  const { clock, lb } = setUp()
  const run = startDrain(lb, web1, { clock })
  const stop = new AbortController()
  const waiting = once(asEmitter(run), 'idle', { signal: stop.signal })
  stop.abort()
  await expect(waiting).rejects.toThrow('abort')
  await clock.runUntil(run.done)
  await run.release()
})

test("a provider's once looks only until its event came", async () => {
  const { clock, lb } = setUp()
  const provider = withEvents(lb)
  const first = once(asEmitter(provider), 'phase')
  const run = startDrain(provider, web1, { clock })
  await clock.runUntil(run.done)
  expect(await first).toMatchObject([{ type: 'phase', to: 'draining' }])
  await run.release()
})

test('an error of a listener reaches the process, not the next listener', async () => {
  const { clock, lb } = setUp()
  const run = startDrain(lb, web1, { clock })
  const uncaught = vi.fn()
  const heard = vi.fn()
  const before = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').once('uncaughtException', uncaught)
  run
    .once('idle', () => {
      throw new Error('mine')
    })
    .on('idle', heard)
  await clock.runUntil(run.done)
  for (const listener of before) process.on('uncaughtException', listener)
  expect(uncaught).toHaveBeenCalledWith(
    expect.objectContaining({ message: 'mine' }),
    expect.anything(),
  )
  expect(heard).toHaveBeenCalledOnce()
  await run.release()
})

test.each([
  ['a name that is misspelt', 'idel', ignore, "no event 'idel', expected one of phase, load, idle"],
  ['a name of every object', 'toString', ignore, "no event 'toString'"],
  ['no name', undefined, ignore, 'no event undefined'],
  ['no function', 'idle', 'print', "('idle'): expected a function as its listener"],
])('%s is refused', async (_, name, listener, words) => {
  const { clock, lb } = setUp()
  const provider = withEvents(lb)
  const run = startDrain(provider, web1, { clock })
  for (const emitter of [run, provider]) {
    for (const verb of ['on', 'once', 'off'] as const) {
      const call = (): unknown => emitter[verb](name as never, listener as never)
      expect(call).toThrow(words)
      expect(call).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }))
    }
  }
  await run.release()
})
