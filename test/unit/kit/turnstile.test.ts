import { describe, expect, test } from 'vitest'
import { Turnstile } from '../../../src/kit/turnstile.js'

const forever = new AbortController().signal

function held() {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  return { promise, end: () => resolve(undefined) }
}

describe('a turnstile', () => {
  test.each([1, 2, 4])('admits %i at once, the others in order', async (places) => {
    const turn = new Turnstile(places)
    const began: number[] = []
    const jobs = Array.from({ length: 6 }, held)
    const all = jobs.map(({ promise }, i) =>
      turn.run(forever, () => {
        began.push(i)
        return promise
      }),
    )
    for (const [i, job] of jobs.entries()) {
      await expect.poll(() => began).toEqual([0, 1, 2, 3, 4, 5].slice(0, i + places))
      job.end()
      await all[i]
    }
  })

  test('drops a queued call that gives up, whose work never begins', async () => {
    const turn = new Turnstile()
    const first = held()
    const one = turn.run(forever, () => first.promise)
    const stop = new AbortController()
    const two = turn.run(stop.signal, () => expect.unreachable())
    const three = turn.run(forever, () => Promise.resolve('three'))
    stop.abort('enough')
    await expect(two).rejects.toBe('enough')
    first.end()
    await one
    expect(await three).toBe('three')
  })

  test('passes a place on if the signal fires at the hand-over', async () => {
    const turn = new Turnstile()
    const first = held()
    const stop = new AbortController()
    const one = turn.run(forever, () => first.promise).then(() => stop.abort('late'))
    const two = turn.run(stop.signal, () => Promise.resolve('two')).catch((e: unknown) => e)
    const three = turn.run(forever, () => Promise.resolve('three'))
    first.end()
    await one
    expect(['two', 'late']).toContain(await two)
    expect(await three).toBe('three')
  })

  test('takes back the place of work that throws', async () => {
    const turn = new Turnstile()
    await expect(turn.run(forever, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await turn.run(forever, () => Promise.resolve('yes'))).toBe('yes')
  })

  test('begins nothing for a signal that fired before', async () => {
    const gone = AbortSignal.abort('before')
    await expect(new Turnstile().run(gone, () => expect.unreachable())).rejects.toBe('before')
  })
})
