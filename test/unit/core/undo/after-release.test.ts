import { describe, expect, test } from 'vitest'
import { DrainableError, ready, resumeDrain, startDrain, watch, type Ticket } from 'drainable'
import { only, web1, web2 } from '../set-up.js'
import { anotherObject, isHold, json, rig, without } from '../rig.js'

describe('a second restore() after another call has had the member', () => {
  test('leaves alone what an operator has drained since ready()', async () => {
    const { clock, lb } = rig()
    const a = startDrain(lb, web1, { clock, timeout: '1m', seal: false })
    await clock.runUntil(a.done)
    await clock.runUntil(a.release())
    await clock.runUntil(ready(lb, web1, { clock }))
    lb.setBehind(web1, 'drain')
    const one = only(await clock.runUntil(a.restore()))
    expect([one.outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
    const two = only(await clock.runUntil(a.restore()))
    expect([two.outcome, two.error?.code, lb.state(web1)]).toEqual([
      'overruled',
      'CONFLICT',
      'drain',
    ])
  })
  test('leaves alone what another drain holds, and has released', async () => {
    const { clock, lb } = rig()
    const a = startDrain(lb, web1, { clock, timeout: '1m', seal: false })
    await clock.runUntil(a.done)
    await clock.runUntil(a.release())
    await clock.runUntil(ready(lb, web1, { clock }))
    const b = startDrain(lb, web1, { clock, timeout: '1m', seal: false })
    await clock.runUntil(b.done)
    await clock.runUntil(b.release())
    const one = only(await clock.runUntil(a.restore()))
    expect([one.outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
    const two = only(await clock.runUntil(a.restore()))
    expect([two.outcome, lb.state(web1)]).toEqual(['overruled', 'drain'])
  })
})

test('restore() after release waits for a lost hold', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 10_000 } })
  lb.occupy(web1)
  const from = clock.now()
  const apply = lb.apply.bind(lb)
  const lost = new DrainableError('CONNECTION_LOST', 'the answer was lost')
  let first = true
  let up = true
  lb.apply = (changes, ctx) => {
    if (!first || !changes.some(isHold)) return apply(changes, ctx)
    first = false
    up = false
    const own = { signal: new AbortController().signal, clock }
    clock.setTimeout(() => void apply(changes, own), 61_000)
    return Promise.reject(lost)
  }
  const observe = lb.observe.bind(lb)
  lb.observe = (refs, ctx) => (up ? observe(refs, ctx) : Promise.reject(lost))
  const a = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(1_000)
  await clock.runUntil(a.release())
  await clock.advance(from + 60_000 - clock.now())
  up = true
  const report = only(await clock.runUntil(a.restore(), 120_000))
  const took = clock.now() - from
  await clock.advance(30_000)
  expect([report.outcome, lb.state(web1), took > 61_000]).toEqual(['restored', 'ready', true])
})

test('restore() after release and a watch says that it is another member', async () => {
  const { clock, lb } = rig()
  const a = startDrain(lb, web1, { clock, timeout: '1m', seal: false })
  await clock.runUntil(a.done)
  await clock.runUntil(a.release())
  lb.setIdentity(web1, '10.9.9.9:80')
  const view = watch(lb, web1, { clock })
  await clock.advance(200)
  await clock.runUntil(view.close())
  const one = only(await clock.runUntil(a.restore(), 60_000))
  expect([one.outcome, one.error?.code, lb.state(web1)]).toEqual(['gone', 'MEMBER_GONE', 'drain'])
})

test('a drain by one object goes on when that of another object has let go', async () => {
  const { clock, lb } = rig({ scopes: ['a', 'b'] })
  const end = lb.occupy(web1, 4, 'b')
  const a = startDrain(lb, web1, { clock, timeout: '10m', seal: false })
  await clock.runUntil(a.inForce)
  const other = anotherObject(lb)
  const half = {
    ...other,
    observe: async (
      refs: Parameters<typeof lb.observe>[0],
      ctx: Parameters<typeof lb.observe>[1],
    ) => {
      const snapshot = await lb.observe(refs, ctx)
      return { ...snapshot, readings: snapshot.readings.map((one) => without(one, 'b')) }
    },
  }
  const b = startDrain(half, web1, { clock, timeout: '1m', seal: false })
  await clock.advance(2_000)
  await clock.runUntil(a.release())
  end()
  await clock.advance(20_000)
  const report = only(await clock.runUntil(b.done, 100_000))
  expect(report.outcome).toBe('idle')
})

test('a member that a call beside has raised since the release is left alone', async () => {
  const { clock, lb } = rig()
  const end = lb.occupy(web1)
  const a = startDrain(lb, web1, { clock, timeout: '10m', seal: false })
  await clock.runUntil(a.inForce)
  const b = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.runUntil(b.inForce)
  await clock.runUntil(a.release())
  end()
  await clock.runUntil(b.done)
  const sealed = lb.state(web1)
  await clock.runUntil(b.release())
  const one = only(await clock.runUntil(a.restore(), 60_000))
  expect([sealed, one.outcome, lb.state(web1)]).toEqual(['maint', 'overruled', 'maint'])
})

test('a resumed drain that leaves a member alone does not end a ready() of it', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1)
  lb.occupy(web2)
  const run = startDrain(lb, [web1, web2], { clock, timeout: '10m', keepReady: 0, seal: false })
  await clock.runUntil(run.inForce)
  lb.setBehind(web1, 'ready')
  await clock.advance(3_000)
  const ticket: Ticket = json(await run.ticket)
  await clock.runUntil(run.release())
  lb.setBehind(web1, 'maint')
  lb.setHealth(web1, 'down')
  const opening = ready(lb, web1, { clock, waitHealthy: '5m' }).then(
    () => 'restored',
    (error: unknown) => String(error),
  )
  await clock.advance(1_000)
  const again = resumeDrain(lb, ticket, { clock })
  await clock.advance(5_000)
  lb.setHealth(web1, 'up')
  const said = await clock.runUntil(opening, 400_000)
  await clock.runUntil(again.release())
  expect([said, lb.state(web1)]).toEqual(['restored', 'ready'])
})
