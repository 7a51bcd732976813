import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { fakeClock } from 'drainable/testing'
import { keepInformed, type InformerLike } from '../../../examples/support/informed.js'

/** An API server's list, and informers on it that stop at an error, as those of the client do. */
class Api {
  objects: string[] = []
  refuses = false
  hangs = false
  made = 0
  #live: EventEmitter | undefined

  make(): InformerLike<string> {
    this.made += 1
    const events = new EventEmitter()
    let known: readonly string[] = []
    return {
      on: (event: string, listener: (what: never) => void) =>
        void events.on(event, listener as (what: unknown) => void),
      list: () => known,
      stop: () => Promise.resolve(),
      start: async () => {
        if (this.refuses) throw new Error('403 Forbidden')
        for (const [i, one] of this.objects.entries()) {
          known = this.objects.slice(0, i + 1)
          events.emit('add', one)
        }
        if (this.hangs) await new Promise<never>(() => undefined)
        this.#live = events
        events.on('seen', () => (known = [...this.objects]))
      },
    }
  }

  put(...objects: string[]): void {
    this.objects = objects
    this.#live?.emit('seen')
    this.#live?.emit('update', objects[0])
  }

  /** After `410 Gone` an informer lists anew: it tells of what went before it takes in what came. */
  relist(...objects: string[]): void {
    const before = this.objects
    this.objects = []
    for (const one of before) {
      this.#live?.emit('seen')
      this.#live?.emit('delete', one)
    }
    this.put(...objects)
  }

  fail(): void {
    const live = this.#live
    this.#live = undefined
    live?.emit('error', new Error('500 Internal Server Error'))
  }
}

function watch(api: Api) {
  const clock = fakeClock()
  const told: (readonly string[] | 'old')[] = []
  const errors: unknown[] = []
  const list = keepInformed(
    () => api.make(),
    () => told.push(list.synced ? list.items : 'old'),
    (error) => errors.push(error),
    clock,
  )
  return { clock, told, errors, list }
}

it('a list is reported once it is complete', async () => {
  const api = new Api()
  api.objects = ['a', 'b']
  api.hangs = true
  const { clock, told, list } = watch(api)
  await clock.advance(1_000)
  expect([list.synced, told]).toEqual([false, []])
  await list.stop()
})

it('a failed watch is stale, and restarts with a whole list', async () => {
  const api = new Api()
  api.objects = ['a', 'b']
  const { clock, told, list } = watch(api)
  await clock.advance(1)
  api.fail()
  expect(list.synced).toBe(false)
  api.put('b')
  await clock.advance(10_000)
  api.put('b', 'c')
  await clock.advance(1)
  expect(told).toEqual([['a', 'b'], 'old', ['b'], ['b', 'c']])
  await list.stop()
})

it('a list restarted after 410 Gone is never reported in part', async () => {
  const api = new Api()
  api.objects = ['a', 'b']
  const { clock, told, list } = watch(api)
  await clock.advance(1)
  api.relist('b', 'c')
  await clock.advance(1)
  expect(told).toEqual([
    ['a', 'b'],
    ['b', 'c'],
  ])
  await list.stop()
})

it('repeated failures are retried with growing pauses until stopped', async () => {
  const api = new Api()
  api.refuses = true
  const { clock, errors, list } = watch(api)
  await clock.advance(600_000)
  expect(api.made).toBeGreaterThan(10)
  expect(api.made).toBeLessThan(20)
  expect(errors).toHaveLength(api.made)
  await list.stop()
  expect(clock.pending).toBe(0)
})
