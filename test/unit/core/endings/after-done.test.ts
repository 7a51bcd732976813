import { describe, expect, test } from 'vitest'
import { DrainableError, startDrain, withEvents, type DrainEvent, type Policy } from 'drainable'
import { recorder, web1 } from '../set-up.js'
import { balancer, json } from '../balancer.js'

const denied = new DrainableError('FORBIDDEN', 'the device says "user ops may not do that"')

/** A drain that is idle and held, and the events that its handle gives from now on. */
async function held(options: Parameters<typeof balancer>[0] = {}, policy: Policy = {}) {
  const { clock, lb } = balancer(options)
  const seen = recorder()
  const run = startDrain(lb, web1, { clock, onEvent: seen.onEvent, ...policy })
  const report = await clock.runUntil(run.done)
  const before = seen.events.length
  const later = (): readonly DrainEvent[] => seen.events.slice(before)
  const types = (): readonly string[] => later().map(({ type }) => type)
  return { clock, lb, run, report, later, types }
}

// Fault 16: what happens to a held drain after `done` is said by its handle too.
describe('a handle after done', () => {
  test('says idle-lost to onEvent when work is seen', async () => {
    const { clock, lb, run, types } = await held()
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    expect(types()).toContain('idle-lost')
  })

  test('says idle-lost to its listeners', async () => {
    const { clock, lb, run } = await held()
    const heard: string[] = []
    run.on('idle-lost', ({ ref }) => heard.push(ref.member))
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    expect(heard).toEqual(['web1'])
  })

  test('says when the member is idle again', async () => {
    const { clock, lb, run, later } = await held()
    const end = lb.occupy(web1)
    await clock.advance(2_000)
    end()
    await clock.advance(5_000)
    await run.release()
    const said = later().filter(({ type }) => type !== 'load')
    expect(said.filter(({ type }) => type === 'idle-lost' || type === 'idle')).toEqual([
      expect.objectContaining({ type: 'idle-lost', ref: web1 }),
      expect.objectContaining({ type: 'idle', ref: web1 }),
    ])
    expect(said.filter(({ type }) => type === 'phase')).toEqual([
      expect.objectContaining({ from: 'idle', to: 'draining' }),
      expect.objectContaining({ from: 'draining', to: 'idle' }),
    ])
  })

  test('gives idle-lost but no load', async () => {
    const { clock, lb, run, types } = await held()
    const end = lb.occupy(web1, 3)
    await clock.advance(3_000)
    end()
    await clock.advance(3_000)
    await run.release()
    expect(types()).toContain('idle-lost')
    expect(types()).not.toContain('load')
  })

  test('says overruled when another client opens the member', async () => {
    const { clock, lb, run, later } = await held()
    lb.setBehind(web1, 'ready')
    await clock.advance(1_000)
    await run.release()
    expect(later()).toContainEqual(
      expect.objectContaining({ type: 'overruled', found: 'ready', reset: false }),
    )
  })

  test('says removed when the member is gone', async () => {
    const { clock, lb, run, types } = await held()
    lb.setBehind(web1, 'gone')
    await clock.advance(2_000)
    await run.release()
    expect(types()).toContain('removed')
  })

  test('says why the hold can not be put back', async () => {
    const { clock, lb, run, later } = await held()
    lb.failNext('reject', { verb: 'apply', error: denied, times: 20 })
    lb.reload()
    await clock.advance(2_000)
    await run.release()
    expect(later()).toContainEqual(
      expect.objectContaining({
        type: 'fault',
        error: expect.objectContaining({ code: 'FORBIDDEN' }) as unknown,
      }),
    )
  })

  test('says when a hold that was put back is in force again', async () => {
    const { clock, lb, run, types } = await held()
    lb.reload()
    await clock.advance(2_000)
    const state = lb.state(web1)
    await run.release()
    expect(state).toBe('maint')
    expect(types()).toContain('in-force')
  })

  test('says idle-lost after a reload that lets work in', async () => {
    const { clock, lb, run, types } = await held()
    lb.reload()
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    expect(types()).toContain('idle-lost')
  })

  // What must stay true.
  test('does not say idle-lost for a forgotten hold that is put back', async () => {
    const { clock, lb, run } = await held()
    const heard: string[] = []
    run.on('idle-lost', () => heard.push('idle-lost'))
    run.on('overruled', () => heard.push('overruled'))
    lb.reload()
    await clock.advance(5_000)
    const state = lb.state(web1)
    await run.release()
    expect(state).toBe('maint')
    expect(heard).toEqual([])
  })

  test('says nothing while the balancer can not be read', async () => {
    const { clock, lb, run, types } = await held()
    lb.disconnect()
    await clock.advance(5_000)
    lb.connect()
    await clock.advance(5_000)
    await run.release()
    expect(types().filter((type) => type !== 'fault')).toEqual([])
  })

  test('says nothing after its release', async () => {
    const { clock, lb, run, types } = await held()
    await run.release()
    const end = lb.occupy(web1)
    await clock.advance(2_000)
    end()
    lb.setBehind(web1, 'ready')
    await clock.advance(2_000)
    expect(types()).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('ends its iterator with the end event', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    const types: string[] = []
    const reading = (async () => {
      for await (const event of run) types.push(event.type)
    })()
    await clock.runUntil(run.done)
    lb.occupy(web1)
    await clock.advance(2_000)
    await clock.runUntil(reading)
    await run.release()
    expect(types.filter((type) => type === 'end')).toHaveLength(1)
    expect(types.at(-1)).toBe('end')
  })

  test('keeps the report that done gave', async () => {
    const { clock, lb, run, report } = await held()
    const said = json(report)
    lb.occupy(web1)
    await clock.advance(2_000)
    const now = json(await run.done)
    await run.release()
    expect(now).toEqual(said)
  })

  test('tells the provider too', async () => {
    const { clock, lb: plain } = balancer()
    const lb = withEvents(plain)
    const heard: string[] = []
    lb.on('idle-lost', ({ ref }) => heard.push(ref.member))
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.occupy(web1)
    await clock.advance(1_000)
    await run.release()
    await lb.close()
    expect(heard).toEqual(['web1'])
  })
})
