/** A member whose name does not resolve has no identity until it does. */
import { describe, expect, test } from 'vitest'
import { drain, findOrphans, ready, restore, resumeDrain, startDrain, type Ticket } from 'drainable'
import { web1 } from '../set-up.js'
import { stepped } from '../stepped.js'
import { anotherObject, json, rig } from '../rig.js'
import { plainStore } from '../../tickets/set-up.js'

const ADDRESS = '10.0.0.1:80'
const ANOTHER = '10.0.0.2:80'

/** A drain under way, left with its ticket; its member has lost its address since. */
async function left() {
  const it = rig()
  it.lb.setIdentity(web1, ADDRESS)
  const end = it.lb.occupy(web1)
  const run = startDrain(it.lb, web1, { clock: it.clock, timeout: '10m' })
  await it.clock.advance(2_000)
  const ticket = json(await run.ticket)
  await run.release()
  it.lb.setIdentity(web1, '')
  return { ...it, ticket, end, other: anotherObject(it.lb) }
}

describe('a member that has lost its address', () => {
  test('is drained on by a new process, and opened again', async () => {
    const { lb, other, clock, ticket, end } = await left()
    await using run = resumeDrain(other, ticket, { clock })
    await clock.advance(2_000)
    expect(run.report().members).toMatchObject([{ phase: 'draining' }])
    end()
    const report = await clock.runUntil(run.done)
    expect(report.members).toMatchObject([{ outcome: 'idle', verifiedIdle: true }])
    await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('ready')
  })

  test('is opened by a restore of a new process', async () => {
    const { lb, other, clock, ticket } = await left()
    const report = await clock.runUntil(restore(other, ticket, { clock }))
    expect(report.outcome).toBe('restored')
    expect(lb.state(web1)).toBe('ready')
  })

  test('goes on by steps', async () => {
    const { other, clock, ticket, end } = await left()
    end()
    let step = await stepped(other, ticket, { clock })
    for (let count = 0; count < 100 && step.outcome === undefined; count += 1) {
      await clock.advance(Math.max(1, step.againIn))
      step = await stepped(other, json(step.ticket), { clock })
    }
    expect(step.outcome).toBe('idle')
  })

  test('is the one of its ticket in a list of orphans', async () => {
    const { lb, clock } = rig()
    lb.setIdentity(web1, ADDRESS)
    const map = new Map<string, unknown>()
    const ended = drain(lb, web1, { clock, tickets: plainStore(map), id: 'job-1' })
    await clock.runUntil(ended)
    const ticket = map.get('job-1') as Ticket
    map.set('job-1', { ...ticket, owner: { ...ticket.owner, host: 'another machine' } })
    lb.setIdentity(web1, '')
    const [orphan] = await findOrphans(plainStore(map), anotherObject(lb), { clock })
    expect(orphan?.members).toMatchObject([{ own: 'maint', owes: true }])
  })

  test('is another one as soon as it has another address', async () => {
    const { lb, other, clock, ticket } = await left()
    await using run = resumeDrain(other, ticket, { clock })
    await clock.advance(2_000)
    lb.setIdentity(web1, ANOTHER)
    const report = await clock.runUntil(run.done.catch(() => run.report()))
    expect(report.members).toMatchObject([{ outcome: 'gone' }])
    expect(lb.state(web1)).toBe('drain')
  })
})

describe('a drain that begins while its member has no address', () => {
  test('goes on once it has one, and is undone', async () => {
    const { lb, clock } = rig()
    lb.setIdentity(web1, '')
    const end = lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(2_000)
    expect(json(await run.ticket).members).toMatchObject([{ found: { identity: '' } }])
    lb.setIdentity(web1, ADDRESS)
    await clock.advance(2_000)
    expect(json(await run.ticket).members).toMatchObject([{ found: { identity: ADDRESS } }])
    end()
    const report = await clock.runUntil(run.done)
    expect(report.members).toMatchObject([{ outcome: 'idle', verifiedIdle: true }])
    await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('ready')
  })

  test('leaves the machine alone that comes after the first', async () => {
    const { lb, clock } = rig()
    lb.setIdentity(web1, '')
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(2_000)
    for (const identity of [ADDRESS, '', ANOTHER]) {
      lb.setIdentity(web1, identity)
      await clock.advance(2_000)
    }
    const report = await clock.runUntil(run.done.catch(() => run.report()))
    expect(report.members).toMatchObject([{ outcome: 'gone' }])
  })

  test('is idle without any', async () => {
    const { lb, clock } = rig()
    lb.setIdentity(web1, '')
    const report = await clock.runUntil(drain(lb, web1, { clock, timeout: '10m' }))
    expect(report.outcome).toBe('idle')
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(lb.state(web1)).toBe('ready')
  })
})
