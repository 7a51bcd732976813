import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import type { CallContext, ChangeResult } from 'drainable/provider'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']

function setOf(cluster: string) {
  const lb = members.map((member) => ({
    endpoint: { address: { socket_address: { address: member.slice(0, -3), port_value: 80 } } },
  }))
  return { cluster_name: cluster, endpoints: [{ lb_endpoints: lb }] }
}

/** Two sets of a control plane that takes the first and fails, or hangs, at the second. */
async function twoSets(second: () => Promise<void>) {
  const sets = ['web', 'api'].map(setOf)
  const fake = await startFake({ pools: { web: members, api: members } })
  const lb = envoy({
    endpoints: callbackEndpoints({
      load: () => Promise.resolve(sets),
      publish: (set) => {
        const at = sets.findIndex(
          (one) => one.cluster_name === (set as { cluster_name: string }).cluster_name,
        )
        if (at === 1) return second()
        sets[at] = set as (typeof sets)[number]
        return Promise.resolve()
      },
    }),
    admin: [fake.url],
  })
  return {
    lb,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
    },
  }
}

const clock = systemClock
const holds = ['web', 'api'].map(
  (pool) => ({ kind: 'hold', ref: { pool, member: '10.0.0.1:80' }, to: 'drain' }) as const,
)

function handing(signal = AbortSignal.timeout(10_000)) {
  const handed: [number, ChangeResult][] = []
  const result: CallContext['result'] = (index, one) => void handed.push([index, one])
  return { handed, ctx: { signal, clock, result } }
}

const first = [[0, { ref: holds[0]!.ref, status: 'applied' }]]

test('a batch given up halfway has handed up what was published', async () => {
  const controller = new AbortController()
  await using it = await twoSets(() => {
    controller.abort('enough')
    return new Promise(() => undefined)
  })
  const { handed, ctx } = handing(controller.signal)
  await expect(it.lb.apply(holds, ctx)).rejects.toBe('enough')
  expect(handed).toEqual(first)
})

test('a batch whose second set fails has handed up the first', async () => {
  await using it = await twoSets(() => Promise.reject(new Error('the control plane is gone')))
  const { handed, ctx } = handing()
  await expect(it.lb.apply(holds, ctx)).rejects.toThrow('the control plane is gone')
  expect(handed).toEqual(first)
})
