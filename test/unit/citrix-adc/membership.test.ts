import { drain, startDrain } from 'drainable'
import type { Change } from 'drainable/provider'
import type { FakeFailure, FakeOptions } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import {
  addServer,
  bindMember,
  unbindMember,
  unbindService,
} from '../../../src/adapters/citrix-adc/codec/membership.js'
import { change, context, rig, WEB1, WEB2, type Rig } from './rig.js'
import { eventually } from '../../support/eventually.js'

const SVC = { pool: 'vs', member: 'svc1' }
const VSERVERS = { vs: ['svc1', 'svc2'] }
const NEW = { pool: 'web', member: '10.0.0.3:80' }
const NAMED = { pool: 'web', member: 'web3:80' }
const add = (ref: Change['ref'], more: object = {}): Change => ({
  kind: 'add',
  ref,
  address: '10.0.0.3',
  port: 80,
  ...more,
})
const remove = (ref: Change['ref']): Change => ({ kind: 'remove', ref })
const writes = ({ fake }: Rig): readonly string[] =>
  fake.requests
    .filter(({ line }) => !line.startsWith('GET') && !/log(in|out)/.test(line))
    .map(({ line }) => line.split(' HTTP')[0]!.replace('/nitro/v1/config/', ''))
const present = async ({ adc }: Rig, ref: Change['ref']) =>
  (await adc.observe([ref], context())).readings[0]!

describe('a member of a group', { concurrent: true }, () => {
  test('leaves its group only once it is idle', async () => {
    await using at = await rig()
    const end = await at.fake.occupy(WEB1)
    const run = startDrain(at.adc, WEB1, { until: 'removed', settle: '50ms', timeout: '50s' })
    await eventually(() => expect(at.fake.look(WEB1).svrstate).toBe('GOING OUT OF SERVICE'))
    expect(writes(at).some((line) => line.startsWith('DELETE'))).toBe(false)
    await end()
    expect((await run.done).outcome).toBe('removed')
    expect((await present(at, WEB1)).present).toBe(false)
    expect((await present(at, WEB2)).present).toBe(true)
    expect(writes(at).at(-1)).toBe(
      'DELETE servicegroup_servicegroupmember_binding/web?args=servername:10.0.0.1,port:80&warning=yes',
    )
    await run.close()
  })

  test('is unbound at the deadline with its work, which that cuts', async () => {
    await using at = await rig()
    await at.fake.occupy(WEB1)
    const policy = { settle: '50ms', timeout: '3s', until: 'removed', onTimeout: 'remove' } as const
    const { members } = await drain(at.adc, WEB1, policy)
    expect(members[0]).toMatchObject({ outcome: 'terminated', terminated: 1, verifiedIdle: false })
    expect((await present(at, WEB1)).present).toBe(false)
  })

  test('is not unbound while in service, because that would cut', async () => {
    await using at = await rig()
    expect(await change(at.adc, remove(WEB1))).toMatchObject({
      status: 'rejected',
      error: { code: 'CONFLICT', message: expect.stringContaining('hold it first') as string },
    })
    expect(writes(at)).toEqual([])
  })

  test('is added by its address, and ready', async () => {
    await using at = await rig()
    expect(await change(at.adc, add(NEW, { weight: 7 }))).toMatchObject({ status: 'applied' })
    expect(await present(at, NEW)).toMatchObject({ own: 'ready', weight: 7, address: '10.0.0.3' })
    expect(await change(at.adc, add(NEW))).toMatchObject({ status: 'unchanged' })
    expect(writes(at)).toEqual(['PUT servicegroup_servicegroupmember_binding?warning=yes'])
  })

  test('is added by the name of a server, which is created if missing', async () => {
    await using at = await rig()
    expect(await change(at.adc, add(NAMED))).toMatchObject({ status: 'applied' })
    expect(await present(at, NAMED)).toMatchObject({ present: true, address: '10.0.0.3' })
    const other = { pool: 'web', member: 'web3:81' }
    expect(await change(at.adc, add(other, { port: 81 }))).toMatchObject({ status: 'applied' })
    expect(writes(at).map((line) => line.split('?')[0])).toEqual([
      'POST server',
      'PUT servicegroup_servicegroupmember_binding',
      'PUT servicegroup_servicegroupmember_binding',
    ])
  })

  test('is added with POST to a build that binds with POST', async () => {
    await using at = await rig()
    at.fake.fail({ match: /^PUT/, how: 'status', status: 405, errorcode: 1240 })
    expect(await change(at.adc, add(NEW))).toMatchObject({ status: 'applied' })
    expect(writes(at).map((line) => line.split(' ')[0])).toEqual(['PUT', 'POST'])
  })

  test('is added by another name where a server of its name is elsewhere', async () => {
    const pools = { web: [WEB1.member], other: [{ name: 'web3:81', address: '10.9.9.9' }] }
    await using at = await rig({ pools })
    const there = async (): Promise<Change['ref'][]> => {
      const { readings } = await at.adc.observe('all', context())
      return readings.flatMap((one) => (one.present && one.address === '10.0.0.3' ? one.ref : []))
    }
    expect(await change(at.adc, add(NAMED))).toMatchObject({ status: 'applied' })
    const [ref = NAMED, ...others] = await there()
    expect([ref.member, others]).toEqual([expect.stringMatching(/^web3-[a-z0-9]+:80$/), []])
    await change(at.adc, { kind: 'hold', ref, to: 'maint' })
    await change(at.adc, remove(ref))
    // It comes back: its server is there still, and is bound again.
    expect(await change(at.adc, add(NAMED))).toMatchObject({ status: 'applied' })
    expect(await there()).toEqual([ref])
    expect(writes(at).filter((line) => line.startsWith('POST server?'))).toHaveLength(1)
  })

  test('leaves no server behind when it can not be bound', async () => {
    await using at = await rig()
    at.fake.fail({ match: /^PUT/, how: 'status', status: 599, errorcode: 257 })
    expect(await change(at.adc, add(NAMED))).toMatchObject({
      status: 'rejected',
      error: { code: 'REJECTED' },
    })
    expect(writes(at).at(-1)).toBe('DELETE server/web3?warning=yes')
    at.fake.fail({ match: /^DELETE server|^DELETE .*server/, how: 'status', errorcode: 257 })
    expect(await change(at.adc, add(NAMED))).toMatchObject({ status: 'unknown' })
  })

  test.each<[string, Change, FakeOptions, string]>([
    ['at another port than its name says', add(NEW, { port: 81 }), {}, 'INVALID_OPTIONS'],
    ['at another address than its name', add(NEW, { address: '10.9.9.9' }), {}, 'INVALID_OPTIONS'],
    [
      'of a group that a desired state keeps',
      add(NEW),
      { pools: { web: { members: [WEB1.member], autoscale: 'API' } } },
      'UNSUPPORTED',
    ],
    ['of nothing', add({ pool: 'none', member: NEW.member }), {}, 'NOT_FOUND'],
    ['of a virtual server without a type', add({ ...SVC, member: 'svc9' }), {}, 'UNSUPPORTED'],
  ])('%s is not added, and nothing is sent', async (_what, one, options, code) => {
    await using at = await rig({ vservers: VSERVERS, ...options })
    expect(await change(at.adc, one)).toMatchObject({ status: 'rejected', error: { code } })
    expect(writes(at)).toEqual([])
  })
})

describe('a service of a virtual server', { concurrent: true }, () => {
  test('is unbound there and stays bound elsewhere', async () => {
    await using at = await rig({ vservers: { ...VSERVERS, two: ['svc1'] } })
    await change(at.adc, { kind: 'hold', ref: SVC, to: 'drain' })
    expect(await change(at.adc, remove(SVC))).toMatchObject({ status: 'applied' })
    expect((await present(at, SVC)).present).toBe(false)
    expect(await present(at, { ...SVC, pool: 'two' })).toMatchObject({ own: 'drain' })
  })

  test('is bound again as it is', async () => {
    await using at = await rig({ vservers: VSERVERS })
    await change(at.adc, { kind: 'hold', ref: SVC, to: 'maint' })
    const before = await present(at, SVC)
    const { address, port } = before.present ? before : {}
    await change(at.adc, remove(SVC))
    const back = await change(at.adc, add(SVC, { address, port }))
    expect(back).toMatchObject({ status: 'applied' })
    expect(await present(at, SVC)).toMatchObject({ own: 'maint', address })
  })
})

describe('an answer that is lost', { concurrent: true }, () => {
  const lost: FakeFailure = { match: /^(PUT|DELETE)/, how: 'reset', execute: true, times: 1 }

  test.each([
    ['to a removal', remove(WEB1)],
    ['to an addition', add(NEW)],
  ])('to %s leads to a look, and nothing is sent again', async (_what, one) => {
    await using at = await rig()
    await change(at.adc, { kind: 'hold', ref: WEB1, to: 'maint' })
    const from = writes(at).length
    at.fake.fail(lost)
    expect(await change(at.adc, one)).toMatchObject({ status: 'applied' })
    expect(writes(at).slice(from)).toHaveLength(1)
  })

  test('and shows no effect may still come, so its outcome is unknown', async () => {
    await using at = await rig()
    at.fake.fail({ ...lost, execute: false })
    expect(await change(at.adc, add(NEW))).toMatchObject({ status: 'unknown' })
  })
})

test('nothing is bound or unbound without a full name', () => {
  for (const make of [
    () => unbindMember('', '10.0.0.1', 80),
    () => unbindMember('web', '', 80),
    () => unbindMember('web', '10.0.0.1', 0),
    () => unbindService('vs', ''),
    () => bindMember('', '10.0.0.1', 80, undefined),
    () => addServer('', '10.0.0.1'),
  ])
    expect(make).toThrow(/nothing was sent/)
})
