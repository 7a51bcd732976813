/** A device group of more than two units: one passes traffic, the others are standby. */
import { drain, startDrain } from 'drainable'
import { startFake } from 'drainable/testing/f5-bigip'
import { describe, expect, test } from 'vitest'
import { connect, present, rig, until, WEB1 } from './rig.js'

const FAST = { settle: '50ms', timeout: '50s' } as const
const THREE = { units: 3, pair: { autoSync: true } } as const

describe.concurrent('a device group of three units', () => {
  test('is one scope while two are standby', async () => {
    await using it = await rig(THREE)
    const [first] = it.fake.urls.map((url) => new URL(url).host)
    expect((await present(it.lb, WEB1)).scopes.map(({ scope }) => scope)).toEqual([first])
  })

  test('drains on while one hangs and the third takes over', async () => {
    await using it = await rig(THREE, { callTimeout: '5m' })
    const [, second, third] = it.fake.units
    await it.fake.occupy(WEB1)
    const run = startDrain(it.lb, WEB1, FAST)
    await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
    it.fake.fail({ how: 'silent', unit: second! })
    await it.fake.failover(third)
    const report = await run.done
    expect(report.outcome).toBe('idle')
    expect(it.fake.state(WEB1, third)).toBe('maint')
    const [, silent] = it.fake.urls.map((url) => new URL(url).host)
    expect(report.members[0]?.lastReading?.hints?.join()).toContain(`${silent} is standby`)
    await run.close()
  })

  test('has the member opened on all of them by an undo', async () => {
    await using it = await rig({ units: 3, pair: true })
    const run = startDrain(it.lb, WEB1, FAST)
    expect((await run.done).outcome).toBe('idle')
    await run.release()
    await it.fake.failover(it.fake.units[2])
    const states = (): string[] => it.fake.units.map((unit) => it.fake.state(WEB1, unit))
    expect(states()).toEqual(['maint', 'ready', 'ready'])
    expect((await run.restore()).outcome).toBe('restored')
    expect(states()).toEqual(['ready', 'ready', 'ready'])
    await run.close()
  })
})

test('one unit by two addresses is refused before anything is changed', async () => {
  await using it = await rig()
  const { port } = new URL(it.fake.url)
  await using twice = connect(it.fake, { url: [it.fake.url, `http://localhost:${port}`] })
  await expect(drain(twice, WEB1, FAST)).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringMatching(/^url: \S+ and \S+ are one unit/) as unknown,
  })
  expect(it.fake.state(WEB1)).toBe('ready')
})

test.each([
  [{ units: 9 }, 'units: expected a number from 1 to 8, found 9'],
  [{ units: 1.5 }, 'units: expected a number from 1 to 8, found 1.5'],
  [{ units: 1, pair: true }, 'units: expected a number from 2 to 8 beside pair, found 1'],
])('a fake with %j is refused', async (options, words) => {
  await expect(startFake(options)).rejects.toThrow(words)
})
