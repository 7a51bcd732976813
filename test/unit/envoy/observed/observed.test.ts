import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { drain, select, watch, type Drain, type DrainEvent } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { eventually } from '../../../support/eventually.js'

const REF = { pool: 'web', member: '10.0.0.1:80' }

/** Two proxies, each with a set of its own, as a control plane of another client gave it to them. */
async function stage(options: Partial<Parameters<typeof startFake>[0]> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-observed-'))
  const proxies = await Promise.all(
    ['one', 'two'].map(async (name) => {
      const file = join(dir, `${name}.json`)
      const give = async (endpoints: Readonly<Record<string, string>>): Promise<void> => {
        const lb_endpoints = Object.entries(endpoints).map(([address, health_status]) => ({
          endpoint: { address: { socket_address: { address, port_value: 80 } } },
          health_status,
        }))
        const resources = [{ cluster_name: 'web', endpoints: [{ lb_endpoints }] }]
        const text = JSON.stringify({ version_info: String(Math.random()), resources })
        await writeFile(`${file}.new`, text)
        await rename(`${file}.new`, file)
      }
      await give({ '10.0.0.1': 'HEALTHY', '10.0.0.2': 'HEALTHY' })
      const fake = await startFake({ pools: { web: [] }, node: name, eds: { file }, ...options })
      return { fake, give }
    }),
  )
  const lb = envoy({
    endpoints: observedEndpoints(),
    admin: () => Promise.resolve(proxies.map(({ fake }) => fake.url)),
  })
  const [one, two] = proxies
  if (one === undefined || two === undefined) throw new Error('there are two')
  return {
    lb,
    one,
    two,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await Promise.all(proxies.map(({ fake }) => fake.close()))
      await rm(dir, { recursive: true, force: true })
    },
  }
}

const DRAINED = { '10.0.0.1': 'DRAINING', '10.0.0.2': 'HEALTHY' }

function until(holds: () => boolean): Promise<void> {
  return eventually(() => {
    expect(holds()).toBe(true)
  })
}

function inFlight(run: Drain): number {
  const counts = run.why().map(({ code, count }) => (code === 'in-flight' ? (count ?? 0) : 0))
  return counts.reduce((sum, count) => sum + count, 0)
}

describe('the sets of another control plane', () => {
  test('are shown by select as the proxies hold them', async () => {
    await using it = await stage()
    await it.two.give({ '10.0.0.3': 'HEALTHY' })
    await eventually(async () => {
      const found = await select(it.lb, { pool: 'web' })
      expect(found.map(({ ref }) => ref.member).sort()).toEqual([
        '10.0.0.1:80',
        '10.0.0.2:80',
        '10.0.0.3:80',
      ])
    })
  })

  test('are idle for watch once every proxy has them and no work left', async () => {
    await using it = await stage()
    const end = await it.two.fake.occupy(REF)
    await using run = watch(it.lb, REF, { settle: '100ms' })
    await it.one.give(DRAINED)
    await until(() => run.why().some(({ text }) => text.includes('shows the endpoint as HEALTHY')))
    await it.two.give(DRAINED)
    await until(() => run.why().some(({ code }) => code === 'in-flight'))
    expect(run.report().members[0]?.phase).toBe('draining')
    await end()
    await until(() => run.report().members[0]?.phase === 'idle')
  })

  test('are not drained: the drain is refused and nothing changed', async () => {
    await using it = await stage()
    await expect(drain(it.lb, REF, { timeout: '50s' })).rejects.toThrow(
      /another control plane owns the endpoints: drain there and watch\(\) here/,
    )
    expect((await select(it.lb, REF))[0]).toMatchObject({ own: 'ready' })
  })

  test('are waited for by a drain of what is drained already', async () => {
    await using it = await stage()
    await it.one.give(DRAINED)
    await it.two.give(DRAINED)
    await eventually(async () => {
      expect((await select(it.lb, REF))[0]).toMatchObject({ own: 'drain' })
    })
    const report = await drain(it.lb, REF, { timeout: '50s', settle: '100ms' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test('removed undrained in one proxy leave its work to wait for', async () => {
    await using it = await stage()
    await using run = watch(it.lb, REF, { settle: '100ms' })
    await until(() => run.report().members[0]?.lastReading !== undefined)
    const end = await it.one.fake.occupy(REF)
    await it.two.give(DRAINED)
    await it.one.give({ '10.0.0.2': 'HEALTHY' })
    await until(() => run.report().members[0]?.phase === 'draining' && inFlight(run) === 1)
    await end()
    await until(() => run.report().members[0]?.phase === 'idle')
  })

  test('leave work unread where statistics of the cluster are hidden', async () => {
    await using it = await stage({ hiddenStats: [/upstream_rq_total/, /upstream_cx_total/] })
    await it.two.give(DRAINED)
    await it.one.give({ '10.0.0.2': 'HEALTHY' })
    await using run = watch(it.lb, REF, { settle: '100ms' })
    await until(() =>
      run.why().some(({ text }) => text.includes('what the removed endpoint still holds is not')),
    )
    expect(run.report().members[0]?.phase).not.toBe('idle')
  })

  test('removed in one proxy after idle take nothing back', async () => {
    await using it = await stage()
    const end = await it.one.fake.occupy(REF)
    await using run = watch(it.lb, REF, { settle: '100ms' })
    const events: string[] = []
    run.on('idle-lost', () => events.push('idle-lost'))
    await it.one.give(DRAINED)
    await it.two.give(DRAINED)
    await end()
    await until(() => run.report().members[0]?.phase === 'idle')
    await it.one.give({ '10.0.0.2': 'HEALTHY' })
    const scopes = () => run.report().members[0]?.lastReading?.scopes ?? []
    await until(() => scopes().some(({ pooled }) => pooled === undefined))
    await it.two.give({ '10.0.0.2': 'HEALTHY' })
    await until(() => run.report().members[0]?.phase === 'removed')
    expect(events).not.toContain('idle-lost')
  })

  test('removed drained in one proxy leave its work to wait for', async () => {
    await using it = await stage()
    const end = await it.one.fake.occupy(REF)
    await using run = watch(it.lb, REF, { settle: '100ms' })
    await it.one.give(DRAINED)
    await it.two.give(DRAINED)
    await until(() => run.report().members[0]?.phase === 'draining' && inFlight(run) === 1)
    await it.one.give({ '10.0.0.2': 'HEALTHY' })
    await it.one.fake.occupy({ pool: 'web', member: '10.0.0.2:80' })
    await until(() => inFlight(run) === 1)
    expect(run.report().members[0]?.phase).toBe('draining')
    await end()
    await until(() => run.report().members[0]?.phase === 'idle')
  })

  test('removed in one proxy before the first look leave work that counts', async () => {
    await using it = await stage()
    const end = await it.one.fake.occupy(REF)
    await it.one.give({ '10.0.0.2': 'HEALTHY' })
    await it.two.give(DRAINED)
    await eventually(async () => {
      const [found] = await select(it.lb, REF)
      expect(found?.scopes.map(({ active }) => active)).toEqual([1, 0])
    })
    await using run = watch(it.lb, REF, { settle: '100ms' })
    await until(() => inFlight(run) === 1)
    await end()
    await until(() => run.report().members[0]?.phase === 'idle')
  })

  test('removed by all with work left are idle once that has ended', async () => {
    await using it = await stage()
    const end = await it.one.fake.occupy(REF)
    const phases: string[] = []
    const onEvent = (event: DrainEvent): void => {
      if (event.type === 'phase') phases.push(event.to)
    }
    await using run = watch(it.lb, REF, { settle: '100ms', onEvent })
    await until(() => inFlight(run) === 1 || run.report().members[0]?.lastReading !== undefined)
    await it.one.give({ '10.0.0.2': 'HEALTHY' })
    await it.two.give({ '10.0.0.2': 'HEALTHY' })
    await until(() => phases.at(-1) === 'draining' && inFlight(run) === 1)
    await end()
    expect((await run.done).outcome).toBe('gone')
    expect(phases).toEqual(['draining', 'idle', 'removed'])
  })

  test('of an absent proxy keep what it held, and no member is idle', async () => {
    await using it = await stage()
    await using run = watch(it.lb, REF, { settle: '100ms' })
    await until(() => run.report().members[0]?.lastReading !== undefined)
    it.two.fake.fail({ how: 'refuse' })
    await it.one.give(DRAINED)
    await until(() => run.why().some(({ code }) => code === 'unreadable'))
    expect(run.report().members[0]?.phase).not.toBe('idle')
  })

  test('emit events for a drain that another client began', async () => {
    await using it = await stage()
    const phases: string[] = []
    await it.one.give(DRAINED)
    await it.two.give(DRAINED)
    // Only its first search comes at once: the pause after it can be a minute.
    await eventually(async () => {
      const [found] = await select(it.lb, { pool: 'web', member: '10.0.0.1:80' })
      expect(found).toMatchObject({ own: 'drain' })
    })
    it.lb.on('phase', ({ to, ref }) => phases.push(`${ref.member} ${to}`))
    await until(() => phases.includes('10.0.0.1:80 idle'))
  })

  test('are not removed: the removal is refused', async () => {
    await using it = await stage()
    await expect(drain(it.lb, REF, { timeout: '50s', until: 'removed' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    })
  })
})
