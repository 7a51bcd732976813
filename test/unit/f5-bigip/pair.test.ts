import { drain, ready, startDrain } from 'drainable'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect, ctx, present, read, rig, until, WEB1, WEB2, type Rig } from './rig.js'

const FAST = { settle: '50ms', timeout: '50s' } as const

test('an active unit that can not be read keeps everything from idle', async () => {
  await using it = await rig({ pair: true })
  await it.fake.occupy(WEB1)
  const run = startDrain(it.lb, WEB1, { ...FAST, timeout: '6s' })
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  it.fake.fail({ how: 'reset', unit: it.fake.units[0]! })
  const report = await run.done
  expect(report.outcome).toMatch(/timeout|unreachable/)
  expect(report.members[0]?.verifiedIdle).toBe(false)
})

test('a formerly active unit that is silent stays listed as unread', async () => {
  await using it = await rig({ pair: { autoSync: true } })
  const end = await it.fake.occupy(WEB1)
  expect((await present(it.lb, WEB1)).scopes).toHaveLength(1)
  await it.fake.failover()
  const recovers = it.fake.fail({ how: 'reset', unit: it.fake.units[0]! })
  const [, second] = it.fake.urls.map((url) => new URL(url).host)
  const { scopes } = await present(it.lb, WEB1)
  expect(scopes.map(({ state }) => state).sort()).toEqual(['read', 'unread'])
  expect(scopes.find(({ state }) => state === 'read')?.scope).toBe(second)

  const run = startDrain(it.lb, WEB1, FAST)
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  await until('that is why', () => run.why().some(({ code }) => code === 'unreadable'))
  expect(run.report().outcome).not.toBe('idle')
  await end()
  await recovers()
  expect((await run.done).outcome).toBe('idle')
  await run.close()
})

test('a standby unit that was never active may be away', async () => {
  await using it = await rig({ pair: true })
  it.fake.fail({ how: 'reset', unit: it.fake.units[1]! })
  const report = await startDrain(it.lb, WEB1, FAST).done
  expect(report.outcome).toBe('idle')
})

test('a failover there and back is a new incarnation', async () => {
  await using it = await rig({ pair: true })
  const [before] = (await present(it.lb, WEB1)).scopes
  await it.fake.failover()
  await it.fake.failover()
  const [after] = (await present(it.lb, WEB1)).scopes
  expect(after?.scope).toBe(before?.scope)
  expect(after?.incarnation).not.toBe(before?.incarnation)
})

test('a member whose counters begin anew restarts nothing of another one', async () => {
  await using it = await rig()
  it.fake.setLoad(WEB2, { totConns: 50 })
  const [before] = (await present(it.lb, WEB1)).scopes
  it.fake.setLoad(WEB2, { totConns: 2 }) // as where a controller removes it and adds it again
  const [after] = (await present(it.lb, WEB1)).scopes
  expect(after?.incarnation).toBe(before?.incarnation)
})

test('counters cleared after idle may hide work', async () => {
  await using it = await rig()
  it.fake.setLoad(WEB1, { totConns: 50, totRequests: 50 })
  const done = drain(it.lb, WEB1, { ...FAST, seal: false }, async (_report, { signal }) => {
    it.fake.setLoad(WEB1, { totConns: 0, totRequests: 0 })
    await until('it is told', () => signal.aborted)
    throw signal.reason
  })
  await expect(done).rejects.toThrow(/began anew/)
})

test('two providers on one unit name its incarnation alike', async () => {
  // The role is an hour old then, and began in the middle of the ten minutes that it is named by.
  const now = Math.floor(Date.now() / 600_000) * 600_000 - 300_000
  vi.useFakeTimers({ toFake: ['Date'], now })
  onTestFinished(() => void vi.useRealTimers())
  await using it = await rig()
  const [one] = (await present(it.lb, WEB1)).scopes
  vi.setSystemTime(now + 400_000)
  await using other = connect(it.fake)
  const [again] = (await present(other, WEB1)).scopes
  expect(again?.incarnation).toBe(one?.incarnation)
  expect(one?.incarnation).toMatch(/^active since about \d{4}-\d\d-\d\dT\d\d:\d0Z$/)
})

test('a drain that a reboot forgot is put back and proved anew', async () => {
  await using it = await rig()
  await it.fake.occupy(WEB1)
  const run = startDrain(it.lb, WEB1, FAST)
  await until('it is disabled', () => it.fake.state(WEB1) === 'drain')
  await it.fake.restart({ ms: 90 })
  expect(it.fake.state(WEB1)).toBe('ready')
  expect((await run.done).outcome).toBe('idle')
  expect(it.fake.state(WEB1)).toBe('maint')
  await run.close()
})

test('why() names OneConnect, persistence and AS3 of a busy member', async () => {
  await using it = await rig({
    pools: { web: [{ name: '10.0.0.1:80', declared: true }, '10.0.0.2:80'], api: ['10.0.0.3:80'] },
    virtuals: {
      'vs-web': { pool: 'web', oneConnect: true, persist: 'cookie' },
      'vs-api': { pool: 'api' },
    },
  })
  await it.fake.occupy(WEB1)
  it.fake.setLoad(WEB1, { curSessions: 3 })
  await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
  for (let i = 0; i < 6; i += 1) await read(it.lb, WEB1)
  const hints = (await present(it.lb, WEB1)).hints?.join('\n')
  expect(hints).toContain('3 sessions on record')
  expect(hints).toContain('/Common/vs-web has a OneConnect profile')
  expect(hints).toContain('persists by cookie')
  expect(hints).toContain('declared by AS3')
  expect(hints).not.toContain('vs-api')
  expect(it.fake.requests.filter((r) => r.path.includes('/ltm/virtual'))).toHaveLength(1)
})

test.each(['terminate', 'remove'] as const)('a %s asks for the role again', async (kind) => {
  await using it = await rig({ pair: { autoSync: true } })
  await present(it.lb, WEB1)
  await it.fake.failover()
  await it.lb.apply([{ kind, ref: WEB1 }], ctx())
  const sent = it.fake.requests.filter(({ method }) => method === 'DELETE')
  expect(sent.map(({ unit }) => unit)).toEqual([it.fake.units[1]])
})

test('a hold sent to a new standby is put right', async () => {
  await using it = await rig({ pair: true })
  await present(it.lb, WEB1)
  await it.fake.failover()
  const report = await startDrain(it.lb, WEB1, FAST).done
  expect(report.outcome).toBe('idle')
  expect(it.fake.state(WEB1, it.fake.units[1])).toBe('maint')
})

describe('a pair without sync that fails over in mid-drain', () => {
  const node = { pool: '@nodes', member: '/Common/10.0.0.1' }
  const stateOf = (it: Rig, ref: typeof WEB1, unit: number) =>
    ref === WEB1
      ? it.fake.state(ref, it.fake.units[unit])
      : it.fake.nodeState(ref.member, it.fake.units[unit])

  test.each([
    ['member', WEB1],
    ['node', node],
  ])('has the %s opened on both units by an undo', async (_what, ref) => {
    await using it = await rig({ pair: true })
    const run = startDrain(it.lb, ref, FAST)
    expect((await run.done).outcome).toBe('idle')
    await run.release()
    await it.fake.failover()
    expect([0, 1].map((unit) => stateOf(it, ref, unit))).toEqual(['maint', 'ready'])
    expect((await present(it.lb, ref)).stored).toBe('maint')
    expect((await run.restore()).outcome).toBe('restored')
    expect([0, 1].map((unit) => stateOf(it, ref, unit))).toEqual(['ready', 'ready'])
    expect((await present(it.lb, ref)).stored).toBeUndefined()
    await run.close()
  })

  test('has the member opened on both units by ready()', async () => {
    await using it = await rig({ pair: true })
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    await present(it.lb, WEB1)
    await it.fake.failover()
    await ready(it.lb, WEB1, { timeout: '50s', waitHealthy: false })
    expect([0, 1].map((unit) => stateOf(it, WEB1, unit))).toEqual(['ready', 'ready'])
  })

  test('has what an operator disabled on the other unit left by an undo', async () => {
    await using it = await rig({ pair: true })
    await present(it.lb, WEB1)
    await it.fake.setBehind(WEB1, 'drain')
    await it.fake.failover()
    expect(await present(it.lb, WEB1)).toMatchObject({ own: 'ready', stored: 'drain' })
    const run = startDrain(it.lb, WEB1, FAST)
    expect((await run.done).outcome).toBe('idle')
    await run.restore()
    expect([0, 1].map((unit) => stateOf(it, WEB1, unit))).toEqual(['drain', 'ready'])
    await ready(it.lb, WEB1, { timeout: '50s', waitHealthy: false })
    expect([0, 1].map((unit) => stateOf(it, WEB1, unit))).toEqual(['ready', 'ready'])
    await run.close()
  })

  // The other one holds the disable, and would bring it back with the next failover.
  test('is opened on a unit that hung by a later ready()', async () => {
    await using it = await rig({ pair: true })
    const run = startDrain(it.lb, WEB1, FAST)
    expect((await run.done).outcome).toBe('idle')
    await run.release()
    await it.fake.failover()
    await present(it.lb, WEB1)
    const unit = it.fake.units[0]!
    const end = it.fake.fail({ how: 'reset', unit })
    const opened = ready(it.lb, WEB1, { timeout: '3s', waitHealthy: false })
    await expect(opened).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining(new URL(it.fake.urls[0]!).host) as unknown,
    })
    expect(stateOf(it, WEB1, 1)).toBe('ready')
    await end()
    await ready(it.lb, WEB1, { timeout: '50s', waitHealthy: false })
    expect(stateOf(it, WEB1, 0)).toBe('ready')
    await run.close()
  })
})
