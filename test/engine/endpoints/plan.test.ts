/** What the changes of a plan do to the clients of a real HAProxy: those of the Service, and strangers. */
import { carryOut } from 'drainable'
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
})
