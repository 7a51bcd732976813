import { describe, expect, test } from 'vitest'
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import { fakeProvider } from 'drainable/testing'
import { web1, web2 } from '../set-up.js'
import { stepped } from '../stepped.js'
import { anotherObject, json, rig, type Rig } from '../rig.js'

/** The ticket of a drain that has removed web1 and still waits for web2. */
async function half({ clock, lb }: Rig): Promise<{ ticket: Ticket; end: () => void }> {
  const end = lb.occupy(web2)
  const run = startDrain(lb, [web1, web2], { clock, until: 'removed', timeout: '10m' })
  await clock.advance(5_000)
  expect([lb.state(web1), lb.state(web2)]).toEqual(['gone', 'drain'])
  const ticket = json(await run.ticket)
  await run.release()
  return { ticket, end }
}

describe.each([true, false])('a resume after our own removal (counted after: %s)', (counts) => {
  const options = { capabilities: { countsAfterRemove: counts } }

  test('ends as removed', async () => {
    const both = rig(options)
    const { clock, lb } = both
    const { ticket, end } = await half(both)
    end()
    await using run = resumeDrain(anotherObject(lb), ticket, { clock })
    const report = await clock.runUntil(run.done, 30_000)
    expect(report.members.map(({ outcome }) => outcome)).toEqual(['removed', 'removed'])
  })

  test('ends as removed by steps', async () => {
    const both = rig(options)
    const { clock, lb } = both
    const { ticket, end } = await half(both)
    end()
    let step = await stepped(lb, ticket, { clock })
    for (let i = 0; i < 200 && step.outcome === undefined; i += 1) {
      await clock.advance(Math.max(1, step.againIn))
      step = await stepped(lb, json(step.ticket), { clock })
    }
    expect(step.outcome).toBe('removed')
  })
})

test('a fake that counts after a removal lists processes without work', async () => {
  const lb = fakeProvider({ pools: { web: ['web1'] }, scopes: ['a', 'b'] })
  lb.setBehind(web1, 'gone')
  const { signal } = new AbortController()
  const clock = rig().clock
  const { readings } = await lb.observe([web1], { signal, clock })
  expect(readings[0]?.scopes).toMatchObject([
    { scope: 'a', state: 'read', active: 0 },
    { scope: 'b', state: 'read', active: 0 },
  ])
})

test('a resume waits for the work of a removed member', async () => {
  const { clock, lb } = rig()
  const end = lb.occupy(web1, 2)
  const run = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(500)
  lb.setBehind(web1, 'gone')
  await clock.advance(1_000)
  const ticket = json(await run.ticket)
  await run.release()
  await using resumed = resumeDrain(anotherObject(lb), ticket, { clock })
  await clock.advance(30_000)
  expect(resumed.report().members).toMatchObject([{ phase: 'draining', verifiedIdle: false }])
  end()
  const report = await clock.runUntil(resumed.done, 10_000)
  expect(report.members).toMatchObject([{ outcome: 'gone', lost: [] }])
})
