import { describe, expect, test } from 'vitest'
import { ready } from 'drainable'
import { setUp, thrown, web1 } from '../set-up.js'

const NEVER = new Promise<never>(() => undefined)

function applies(lb: { requests: readonly { verb: string }[] }): number {
  return lb.requests.filter((call) => call.verb === 'apply').length
}

describe('ready()', () => {
  test('gives in to a client that keeps setting the member back', async () => {
    const { clock, lb } = setUp({ latency: 1 })
    lb.setBehind(web1, 'drain')
    const apply = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      const results = await apply(changes, ctx)
      lb.setBehind(web1, 'drain')
      return results
    }
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock })), 120_000)
    expect(error).toMatchObject({ code: 'CONFLICT' })
    expect((error as Error).message).toContain('another client')
    expect(applies(lb)).toBeLessThan(10)
    expect(clock.pending).toBe(0)
  })

  test("stops the caller's own check when it is over", async () => {
    const { clock, lb } = setUp()
    lb.setHealth(web1, 'unchecked')
    lb.setBehind(web1, 'drain')
    let given: AbortSignal | undefined
    const caught = thrown(
      ready(lb, web1, { clock, waitHealthy: (_, signal) => ((given = signal), NEVER) }),
    )
    await clock.advance(500)
    lb.setBehind(web1, 'gone')
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'MEMBER_GONE' })
    expect(given?.aborted).toBe(true)
  })

  test('a check that gives false is a failed check', async () => {
    const { clock, lb } = setUp()
    lb.setBehind(web1, 'drain')
    const waitHealthy = () => Promise.resolve(false)
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock, waitHealthy })))
    expect(error).toMatchObject({ code: 'HEALTH_TIMEOUT' })
    expect((error as Error).message).toContain("the caller's health check failed: it gave false")
    expect(lb.state(web1)).toBe('drain')
  })

  test('fails the check that throws at once', async () => {
    const { clock, lb } = setUp()
    lb.setHealth(web1, 'unchecked')
    const waitHealthy = (): never => {
      throw new Error('no route')
    }
    expect(await clock.runUntil(thrown(ready(lb, web1, { clock, waitHealthy })))).toMatchObject({
      code: 'HEALTH_TIMEOUT',
    })
  })
})
