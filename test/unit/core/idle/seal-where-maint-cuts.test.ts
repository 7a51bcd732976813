import { describe, expect, test } from 'vitest'
import { resumeDrain, startDrain, type Capabilities, type Drain } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, recorder, web1 } from '../set-up.js'
import { after, isSeal, json, recordChanges, rig, showAs } from '../rig.js'

/** A drain that is idle and sealed, and held. */
async function sealed(lb: FakeProvider, clock: FakeClock): Promise<Drain> {
  const run = startDrain(lb, web1, { clock, seal: true, timeout: '10m' })
  expect(only(await clock.runUntil(run.done))).toMatchObject({ outcome: 'idle', sealed: true })
  expect(lb.state(web1)).toBe('maint')
  return run
}

const NOT_GENTLE: readonly Capabilities['maint'][] = ['cuts', 'unknown']

// Fault 8
describe('a seal that a reload forgot, where maint cuts', () => {
  test.each(NOT_GENTLE)('is put back as drain while there is live work (%s)', async (maint) => {
    const { clock, lb } = rig({ capabilities: { maint } })
    await using run = await sealed(lb, clock)
    lb.reload()
    lb.occupy(web1, 8)
    await clock.advance(10_000)
    expect(lb.load(web1)).toBe(8)
    expect(lb.state(web1)).toBe('drain')
    expect(only(run.report()).terminated).toBe(0)
  })

  test.each(NOT_GENTLE)('is set again once idle is proved anew (%s)', async (maint) => {
    const { clock, lb } = rig({ capabilities: { maint } })
    await using run = await sealed(lb, clock)
    lb.reload()
    const end = lb.occupy(web1, 8)
    await clock.advance(10_000)
    end()
    await clock.advance(100)
    expect(lb.state(web1)).toBe('drain')
    await clock.advance(5_000)
    expect(lb.state(web1)).toBe('maint')
    expect(only(run.report())).toMatchObject({ phase: 'idle', sealed: true })
  })

  test('is put back as drain first, even if nothing arrived', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    await using run = await sealed(lb, clock)
    const sent = recordChanges(lb, clock)
    lb.reload()
    await clock.advance(10_000)
    expect(sent.map(({ change }) => change)).toMatchObject([
      { kind: 'hold', to: 'drain' },
      { kind: 'hold', to: 'maint' },
    ])
    expect(sent[1]!.at - sent[0]!.at).toBeGreaterThanOrEqual(1_000)
    expect(lb.state(web1)).toBe('maint')
    await run.release()
  })

  test('says idle-lost and draining until it is set again', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    await using run = await sealed(lb, clock)
    const seen = recorder()
    run.on('idle-lost', seen.onEvent)
    lb.reload()
    const end = lb.occupy(web1, 8)
    await clock.advance(10_000)
    expect(seen.of('idle-lost')).toHaveLength(1)
    expect(only(run.report())).toMatchObject({ phase: 'draining', sealed: false })
    end()
  })

  test('is put back as drain if the member itself says that maint cuts', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'gentle' } })
    showAs(lb, (reading) => (reading.present ? { ...reading, maint: 'cuts' } : reading))
    await using run = await sealed(lb, clock)
    const sent = recordChanges(lb, clock)
    lb.reload()
    lb.occupy(web1, 8)
    await clock.advance(10_000)
    expect(sent.map(({ change }) => change)).toMatchObject([{ kind: 'hold', to: 'drain' }])
    await run.release()
  })

  test('is put back as drain if the reload came with the seal itself', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    after(lb, isSeal, () => {
      lb.reload()
      lb.occupy(web1, 8)
    })
    await using run = startDrain(lb, web1, { clock, seal: true, timeout: '10m' })
    await clock.advance(20_000)
    expect(lb.load(web1)).toBe(8)
    expect(lb.state(web1)).toBe('drain')
    expect(only(run.report())).toMatchObject({ phase: 'draining', terminated: 0 })
  })

  test('is put back as drain by a resume', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    const first = await sealed(lb, clock)
    const ticket = json(await first.ticket)
    await first.release()
    lb.reload()
    lb.occupy(web1, 8)
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(10_000)
    expect(lb.load(web1)).toBe(8)
    expect(lb.state(web1)).toBe('drain')
    expect(only(run.report()).terminated).toBe(0)
  })

  test('is put back as drain after each of several reloads', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    await using run = await sealed(lb, clock)
    for (let i = 0; i < 3; i += 1) {
      lb.reload()
      const end = lb.occupy(web1, 8)
      await clock.advance(5_000)
      expect([lb.load(web1), lb.state(web1)]).toEqual([8, 'drain'])
      end()
      await clock.advance(5_000)
      expect(lb.state(web1)).toBe('maint')
    }
    await run.release()
  })
})

// Fault 8: where maint cuts nothing the member is sealed at once
describe('a hold that a reload forgot', () => {
  test('is put back as maint at once where maint is gentle', async () => {
    const { clock, lb } = rig()
    await using run = await sealed(lb, clock)
    const sent = recordChanges(lb, clock)
    lb.reload()
    await clock.advance(1_000)
    expect(sent[0]?.change).toMatchObject({ kind: 'hold', to: 'maint' })
    expect(lb.state(web1)).toBe('maint')
    await run.release()
  })

  test("is put back as maint at once if the caller wished hold: 'maint'", async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    const policy = { clock, hold: 'maint', onTimeout: 'terminate', timeout: '10m' } as const
    await using run = startDrain(lb, web1, policy)
    await clock.runUntil(run.done)
    const sent = recordChanges(lb, clock)
    lb.reload()
    await clock.advance(1_000)
    expect(sent[0]?.change).toMatchObject({ kind: 'hold', to: 'maint' })
  })

  test('is put back as drain, and stays so, if no seal was wished', async () => {
    const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
    await using run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    lb.reload()
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
  })
})
