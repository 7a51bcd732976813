/** What the changes of a plan do to the clients of a real HAProxy: those of the Service, and strangers. */
import { carryOut, reconcile } from 'drainable'
import {
  mapEndpoints,
  planChanges,
  toDesired,
  type DesiredMember,
  type PlanOptions,
} from 'drainable/endpoints'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { callContext, type DrainableProvider } from 'drainable/provider'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { Haproxy } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

const context = callContext()

describe.each(engines('haproxy'))('a plan on HAProxy $version', (engine) => {
  let haproxy: Haproxy
  let live: Backend
  let lb: DrainableProvider

  beforeAll(async () => {
    haproxy = await Haproxy.start({
      engine,
      config: (port) => {
        const pool = (name: string, servers: string): string => `
frontend f_${name}
  bind 127.0.0.1:${port(name)}
  default_backend ${name}
backend ${name}
  balance roundrobin
  retries 0
  timeout connect 500ms
${servers}`
        const at = (name: string, to = 'live'): string => `  server ${name} 127.0.0.1:${port(to)}`
        return [
          pool('emptied', at('ctl-1')),
          pool('stranger', at('ctl-1')),
          pool('second', at('ctl-1')),
          pool('machines', `${at('ctl-1')}\n${at('vm-1', 'vm')}`),
          pool('healed', `${at('ctl-1')}\n${at('ctl-2', 'dead')}`),
          pool('halfdead', `${at('ctl-1')}\n${at('ctl-2', 'dead')}`),
          pool('stateful', at('ctl-web-0', 'dead')),
          pool('long', at(`ctl-${'x'.repeat(123)}`, 'dead')),
          pool('busy', `${at('ctl-web-0')}\n${at('ctl-web-1', 'vm')}`),
        ].join('\n')
      },
    })
    live = await Backend.start(haproxy.port('live'), 'live')
    lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
  })

  afterAll(async () => {
    await lb.close()
    await haproxy[Symbol.asyncDispose]()
    await live[Symbol.asyncDispose]()
  })

  async function send(
    desired: readonly DesiredMember[],
    options: Omit<PlanOptions, 'owns'>,
  ): Promise<void> {
    const owns: PlanOptions['owns'] = ({ ref }) => ref.member.startsWith('ctl-')
    const plan = planChanges(desired, await lb.observe('all', context), { owns, ...options })
    for (const result of await lb.apply(plan.changes, context))
      expect(result.status).toBe('applied')
  }

  async function answers(pool: string, count = 4): Promise<number[]> {
    const found: number[] = []
    for (let i = 0; i < count; i++) found.push((await request(haproxy.port(pool), '/')).status)
    return found
  }

  test('a Service scaled to zero takes out no unrelated member', async () => {
    expect(await answers('stranger')).toEqual([200, 200, 200, 200])
    await send([], { pools: ['emptied'], allowEmpty: true })
    expect(await answers('emptied', 1)).toEqual([503])
    expect(await answers('stranger')).toEqual([200, 200, 200, 200])
  })

  test('of two Services in one list, only the emptied one is emptied', async () => {
    const at = { addresses: ['127.0.0.1'], port: haproxy.port('live') }
    const desired = toDesired(mapEndpoints([at]), { pool: 'stranger' })
    await send(desired, { pools: ['stranger', 'second'], allowEmpty: true })
    expect(await answers('second', 1)).toEqual([503])
    expect(await answers('stranger', 1)).toEqual([200])
  })

  test('a machine that is not an endpoint stays ready', async () => {
    await send([], { pools: ['machines'], allowEmpty: true })
    expect(await haproxy.stat('machines', 'ctl-1', 'status')).toMatch(/MAINT|DRAIN/)
    expect(await haproxy.stat('machines', 'vm-1', 'status')).toBe('no check')
  })

  test('a dead member leaves below the floor, and every request is answered', async () => {
    const at = { addresses: ['127.0.0.1'], port: haproxy.port('live') }
    const desired = toDesired(mapEndpoints([at]), { pool: 'halfdead' })
    expect(await answers('halfdead')).toContain(503)
    await send(desired, { pools: ['halfdead'], keepReady: 2 })
    expect(await answers('halfdead')).toEqual([200, 200, 200, 200])
  })

  test('a plan carried out by the core removes a dead member, proved idle', async () => {
    const at = { addresses: ['127.0.0.1'], port: haproxy.port('live') }
    const desired = toDesired(mapEndpoints([at]), { pool: 'healed' })
    const owns: PlanOptions['owns'] = ({ ref }) => ref.member.startsWith('ctl-')
    const { capabilities } = await lb.describe(context)
    const options = { pools: ['healed'], owns, keepReady: 2, capabilities }
    const plan = planChanges(desired, await lb.observe('all', context), options)
    const { steps } = await carryOut(lb, plan, { timeout: '20s' })
    expect(steps.map(({ error }) => error?.message)).toEqual([undefined])
    expect(steps[0]?.report?.members[0]?.verifiedIdle).toBe(true)
    expect(await answers('healed')).toEqual([200, 200, 200, 200])
  })

  /** The pod serves on the port of `live`, under a name that another member has. */
  function back(pool: string, member: string): DesiredMember {
    const port = haproxy.port('live')
    return { pool, member, address: '127.0.0.1', port, state: 'serve' }
  }

  /** The servers of a backend, as HAProxy names them. */
  async function servers(pool: string): Promise<string[]> {
    const { readings } = await lb.observe('all', context)
    return readings.flatMap(({ ref, present }) => (present && ref.pool === pool ? ref.member : []))
  }

  test.each([
    ['stateful', 'ctl-web-0'],
    ['long', `ctl-${'x'.repeat(123)}`],
  ])('the only pod of the pool %s comes back under its name', async (pool, name) => {
    expect(await answers(pool, 1)).toEqual([503])
    await using loop = reconcile(lb, {
      pools: [pool],
      owns: ({ ref }) => ref.member.startsWith('ctl-'),
    })
    loop.set([back(pool, name)])
    await loop.settled()
    expect(await answers(pool)).toEqual([200, 200, 200, 200])
    const [added = '', ...others] = await servers(pool)
    expect(others).toEqual([])
    expect(added).not.toBe(name)
    expect(added.startsWith(name.slice(0, 100))).toBe(true)
  })

  test('a pod that comes back serves beside the work of the one before', async () => {
    await using old = await Backend.start(haproxy.port('vm'), 'old')
    const hold = request(haproxy.port('busy'), '/hold')
    const other = request(haproxy.port('busy'), '/hold')
    await eventually(() => expect([old.held, live.held]).toEqual([1, 1]))
    await using loop = reconcile(lb, { pools: ['busy'], owns: () => true, timeout: '1m' })
    // ctl-web-1 was on the port of `vm`.
    const moved = { ...back('busy', 'ctl-web-1'), address: '127.0.0.2' }
    await using next = await Backend.start(haproxy.port('live'), 'next', '127.0.0.2')
    loop.set([back('busy', 'ctl-web-0'), moved])
    await eventually(async () => expect(await servers('busy')).toHaveLength(3))
    const status = (): Promise<string> => haproxy.stat('busy', 'ctl-web-1', 'status')
    await eventually(async () => expect(await status()).toMatch(/MAINT|DRAIN/))
    await answers('busy')
    expect(next.total).toBe(2)
    expect(old.held).toBe(1)
    old.release()
    live.release()
    expect((await Promise.all([hold, other])).map(({ status }) => status)).toEqual([200, 200])
    // HAProxy 2.6 counts pooled connections for up to 15 s, and removes no server that has one.
    await eventually(async () => expect(await servers('busy')).toHaveLength(2), 40_000)
  })
})
