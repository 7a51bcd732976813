/** A change without an answer does not hold up the looks beside it: work on its member is seen at once. */
import type { CallContext } from 'drainable/provider'
import { expect, test } from 'vitest'
import { adapterNames } from '../../scripts/package/entries.ts'
import { systemClock } from '../../src/provider/clock.js'
import { until } from '../support/wait.js'
import type { Subject } from '../unit/testing/protocol-fakes/client.js'

/** For a loaded machine, in milliseconds; the change itself would wait for longer. */
const SOON = 6_000

test.concurrent.each(adapterNames())('%s shows work while a change has no answer', async (name) => {
  const path = new URL(`../unit/testing/protocol-fakes/${name}.ts`, import.meta.url).href
  const { subject } = (await import(path)) as { subject: Subject }
  const fake = await subject.start()
  const { lb, ref } = await subject.deaf(fake as never)
  const stop = new AbortController()
  const ctx: CallContext = { signal: stop.signal, clock: systemClock }
  const active = async (): Promise<number> => {
    const [reading] = (await lb.observe([ref], ctx)).readings
    return (reading?.scopes ?? []).reduce((sum, scope) => sum + scope.active, 0)
  }
  try {
    await lb.describe(ctx)
    expect(await active()).toBe(0)
    let answered = false
    const changed = lb
      .apply([{ kind: 'hold', to: 'drain', ref }], ctx)
      .catch(() => undefined)
      .then(() => (answered = true))
    const end = await fake.occupy(ref)
    await until(async () => (await active()) > 0, 'the work', SOON)
    expect(answered).toBe(false)
    await end()
    stop.abort(new Error('the test is over'))
    await changed
  } finally {
    stop.abort()
    await lb.close()
    await fake.close()
  }
})
