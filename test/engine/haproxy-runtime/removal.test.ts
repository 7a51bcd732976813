/** What a removal that HAProxy refuses leaves behind: nothing. */
import { drain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import {
  callContext,
  type Change,
  type ChangeResult,
  type DrainableProvider,
} from 'drainable/provider'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

const DRAIN = '8'

describe.each(engines('haproxy'))('a removal that HAProxy $version refuses', (engine) => {
  let haproxy: Haproxy
  let s1: Backend
  let spare: Backend
  let lb: DrainableProvider

  beforeAll(async () => {
    haproxy = await Haproxy.start({
      engine,
      mode: 'master',
      global: '  stats timeout 60s',
      config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  use_backend backed if { path_beg /backed }
  use_backend late if { path_beg /late }
  use_backend lead if { path_beg /lead }
  default_backend web
backend web
  balance roundrobin
  cookie SRV insert
  server s1 127.0.0.1:${port('s1')} cookie s1
backend late
  balance roundrobin
  http-request set-path /hold
  server s1 127.0.0.1:${port('s1')}
backend lead
  http-request set-path /hold
  server s1 127.0.0.1:${port('s1')} check
backend led
  server t1 127.0.0.1:${port('s1')} track lead/s1
backend tracked
  server s1 127.0.0.1:${port('s1')} check
backend trackers
  server t1 127.0.0.1:${port('s1')} track tracked/s1
backend backed
  balance roundrobin
  http-request set-path /hold
  server s1 127.0.0.1:${port('s1')} weight 7 check inter 100 on-marked-up shutdown-backup-sessions
  server b1 127.0.0.1:${port('b1')} backup`,
    })
    s1 = await Backend.start(haproxy.port('s1'), 's1')
    spare = await Backend.start(haproxy.port('b1'), 'b1')
    lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master, keepFollowers: 0 })
  })

  afterAll(async () => {
    await lb.close()
    await haproxy[Symbol.asyncDispose]()
    await s1[Symbol.asyncDispose]()
    await spare[Symbol.asyncDispose]()
  })

  async function apply(change: Change): Promise<ChangeResult> {
    const [result] = await lb.apply([change], callContext())
    return result!
  }

  /** Admin mask and weight of a server. */
  async function stateOf(pool: string, name: string): Promise<readonly (string | undefined)[]> {
    const reply = await haproxy.cli(`show servers state ${pool}`)
    const cells = reply
      .split('\n')
      .find((line) => line.split(' ')[3] === name)
      ?.split(' ')
    return [cells?.[6], cells?.[7]]
  }

  /** A request in flight. */
  async function held(backend: Backend, path: string): Promise<() => Promise<number>> {
    const before = backend.held
    const answer = request(haproxy.port('web'), path)
    await until(() => backend.held > before, 'in flight')
    return async () => {
      backend.release(1)
      return (await answer).status
    }
  }

  test('leaves a busy server drained, and its work untouched', async () => {
    const ref = { pool: 'web', member: 's1' }
    const end = await held(s1, '/hold')
    await apply({ kind: 'hold', ref, to: 'drain' })
    expect(await apply({ kind: 'remove', ref })).toMatchObject({
      status: 'rejected',
      error: { code: 'CONFLICT', retryable: true },
    })
    expect(await stateOf('web', 's1')).toEqual([DRAIN, '1'])
    expect(await end()).toBe(200)
  })

  test('leaves a server that others track drained', async () => {
    const ref = { pool: 'tracked', member: 's1' }
    await apply({ kind: 'hold', ref, to: 'drain' })
    expect(await apply({ kind: 'remove', ref })).toMatchObject({
      status: 'rejected',
      error: { code: 'REJECTED', retryable: false },
    })
    expect(await stateOf('tracked', 's1')).toEqual([DRAIN, '1'])
  })

  test('cuts nothing on backup servers when it is undone', async () => {
    const ref = { pool: 'backed', member: 's1' }
    const busy = await held(s1, '/backed')
    await apply({ kind: 'hold', ref, to: 'drain' })
    const backup = await held(spare, '/backed')
    expect(await apply({ kind: 'remove', ref })).toMatchObject({ status: 'rejected' })
    expect(await stateOf('backed', 's1')).toEqual([DRAIN, '7'])
    expect(await backup()).toBe(200)
    expect(await busy()).toBe(200)
  })

  test('at the deadline of a drain is made once the work is cut', async () => {
    const ref = { pool: 'late', member: 's1' }
    const before = s1.held
    const answer = request(haproxy.port('web'), '/late').catch(() => undefined)
    await until(() => s1.held > before, 'in flight')
    const { members } = await drain(lb, ref, {
      timeout: '3s',
      settle: '50ms',
      keepReady: 0,
      until: 'removed',
      onTimeout: 'remove',
    })
    expect(members[0]).toMatchObject({ outcome: 'terminated', terminated: 1, verifiedIdle: false })
    expect(await stateOf('late', 's1')).toEqual([undefined, undefined])
    s1.release(1)
    await answer
  })

  test('for good cuts nothing at the deadline of a drain', async () => {
    const ref = { pool: 'lead', member: 's1' }
    const before = s1.held
    const answer = request(haproxy.port('web'), '/lead')
    await until(() => s1.held > before, 'in flight')
    const policy = { timeout: '3s', settle: '50ms', keepReady: 0 } as const
    const ending = { until: 'removed', onTimeout: 'remove' } as const
    await expect(drain(lb, ref, { ...policy, ...ending })).rejects.toMatchObject({
      code: 'REJECTED',
      report: { members: [{ outcome: 'refused', terminated: 0 }] },
    })
    s1.release(1)
    expect((await answer).status).toBe(200)
  })
})
