import { forgetPersistence } from '../../../src/adapters/citrix-adc/codec/nitro.js'
import { drain, startDrain } from 'drainable'
import type { Change } from 'drainable/provider'
import type { CitrixFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { change, context, rig, WEB1, WEB2 } from './rig.js'
import { eventually } from '../../support/eventually.js'
import { ioClock } from '../../support/io-clock.js'

const SVC1 = { pool: 'vs api', member: 'svc1' }
const OPTIONS = {
  // Most tests here run at once: handshakes would take most of their time.
  tls: false,
  vservers: {
    'vs web': { members: [], groups: ['web'] },
    'vs api': ['svc1', 'svc2'],
    'vs other': ['svc3'],
  },
}
const OTHER = { pool: 'vs other', member: 'svc3' }

const toMaint = { kind: 'hold', ref: WEB1, to: 'maint' } satisfies Change
const terminate = { kind: 'terminate', ref: WEB1 } satisfies Change

/** What was sent to change something, in a few words. */
function sent({ requests }: CitrixFake): readonly unknown[] {
  return requests
    .filter(({ line }) => line.includes('action='))
    .map(({ line, body }) =>
      line.includes('lbpersistent') ? body : /action=(\w+)/.exec(line)?.[1],
    )
}

const cleared = (vserver: string) => ({ lbpersistentsessions: { vserver } })

describe("persistence: 'forget'", { concurrent: true }, () => {
  test('lets a member that only persistence keeps close by itself', async () => {
    // No look counts as recent.
    await using at = await rig(OPTIONS, { persistence: 'forget', freshness: 0 })
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 3 })
    await fake.occupy(OTHER, { persistent: 1 })
    await change(adc, { kind: 'hold', ref: WEB1, to: 'drain' })
    await change(adc, { kind: 'hold', ref: OTHER, to: 'drain' })
    const ctx = context()
    await adc.observe([WEB1], ctx)
    expect(await change(adc, toMaint)).toMatchObject({ status: 'applied' })
    expect(sent(fake)).toEqual(['disable', 'disable', cleared('vs web')])
    expect(fake.look(WEB1)).toMatchObject({ svrstate: 'OUT OF SERVICE', cut: 0 })
    expect(fake.look(OTHER).svrstate).toBe('GOING OUT OF SERVICE')
    const { readings } = await adc.observe([WEB1], ctx)
    expect(JSON.stringify(readings)).toContain('entries of all clients of vs web were deleted')
  })

  test('deletes the entries before the remaining work is cut', async () => {
    await using at = await rig(OPTIONS, { persistence: 'forget' })
    const { fake, adc } = at
    await fake.occupy(WEB1)
    await change(adc, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(await change(adc, terminate)).toMatchObject({ status: 'applied', terminated: 1 })
    expect(sent(fake)).toEqual(['disable', cleared('vs web'), 'disable'])
  })

  test('deletes those of a service, on each of its virtual servers', async () => {
    const vservers = { ...OPTIONS.vservers, 'vs two': ['svc1'] }
    await using at = await rig({ ...OPTIONS, vservers }, { persistence: 'forget' })
    const { fake, adc } = at
    await change(adc, { kind: 'hold', ref: SVC1, to: 'maint' })
    expect(sent(fake)).toEqual([cleared('vs api'), cleared('vs two'), 'disable'])
  })

  test('disables nothing if the deletion is refused', async () => {
    await using at = await rig(OPTIONS, { persistence: 'forget' })
    const { fake, adc } = at
    fake.fail({ match: /lbpersistent/, how: 'status', status: 403, errorcode: 2138 })
    const result = await change(adc, toMaint)
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'FORBIDDEN' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('was not disabled'))
    expect(fake.look(WEB1).enabled).toBe(true)
  })
})

// By a clock of its own: what is read under load takes none of the drain's time.
test('the end of a drain deletes persistence entries when the caller says so', async () => {
  using clock = ioClock()
  await using at = await rig({ ...OPTIONS, clock }, { persistence: 'forget' })
  const { fake, adc } = at
  await fake.occupy(WEB1)
  await fake.occupy(WEB1, { persistent: 2 })
  const policy = { timeout: '8s', onTimeout: 'terminate', clock } as const
  expect((await clock.run(drain(adc, WEB1, policy))).outcome).toBe('terminated')
  expect(sent(fake)).toContainEqual(cleared('vs web'))
})

test('persistence entries are kept unless an option says otherwise', async () => {
  await using at = await rig(OPTIONS)
  await at.fake.occupy(WEB1)
  await change(at.adc, { kind: 'hold', ref: WEB1, to: 'drain' })
  await change(at.adc, terminate)
  expect(sent(at.fake)).toEqual(['disable', 'disable'])
})

test('entries are never deleted without a virtual server', () => {
  expect(() => forgetPersistence('')).toThrow(/without a full name, nothing was sent/)
})

test('a configuration that was not saved is told, with what to do', async () => {
  await using at = await rig({}, { save: true })
  const { fake, adc } = at
  await fake.occupy(WEB2)
  fake.fail({ match: /action=save/, how: 'status', status: 403, errorcode: 2138 })
  const run = startDrain(adc, WEB2, { timeout: '50s' })
  await eventually(() => {
    expect(JSON.stringify(run.why())).toMatch(/a reboot forgets the change.*save ns config/)
  })
  await run.restore()
})
