import { expect, test } from 'vitest'
import { startDrain, type Snapshot } from 'drainable'
import type { DrainableProvider } from 'drainable/provider'
import { setUp, web1 } from '../set-up.js'

test('a pushed snapshot is taken at once until the drain ends', async () => {
  const { clock, lb } = setUp({ capabilities: { minInterval: 60_000 } })
  let push = (): void => undefined
  let listening = 0
  const pushing: DrainableProvider = lb
  pushing.watch = async function* (refs, { signal }): AsyncIterable<Snapshot> {
    listening += 1
    try {
      while (!signal.aborted) {
        await new Promise<void>((resolve) => {
          push = resolve
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
        yield await lb.observe(refs, { signal, clock })
      }
    } finally {
      listening -= 1
    }
  }
  const end = lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '10m', seal: false })
  await clock.advance(70_000)
  expect(listening).toBe(1)
  end()
  for (let i = 0; i < 3; i += 1) {
    await clock.advance(500)
    push()
  }
  await clock.advance(1)
  expect(run.report().members[0]?.phase).toBe('idle') // the next poll is far away
  await run.release()
  await clock.advance(1)
  expect(listening).toBe(0)
})
