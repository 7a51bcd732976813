import { describe, expect, test } from 'vitest'
import { drain, DrainableError, isDrainableError } from 'drainable'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'

const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
const ref = { pool: 'web', member: members[0]! }
const set = {
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: members.map((name) => ({
        endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
      })),
    },
  ],
}

/** How a drain ends whose control plane rejects each publication. */
async function ended(error: Error): Promise<{ error: unknown; published: number }> {
  await using fake = await startFake({ pools: { web: members } })
  let published = 0
  const endpoints = callbackEndpoints({
    load: () => Promise.resolve(set),
    publish: () => {
      published += 1
      return Promise.reject(error)
    },
  })
  await using lb = envoy({ endpoints, admin: [fake.url] })
  const thrown: unknown = await drain(lb, ref, { timeout: '6s' }).catch((e: unknown) => e)
  return { error: thrown, published }
}

describe('an error of publish()', () => {
  test('of any kind is the cause of the timeout, and named in it', async () => {
    const { error } = await ended(new Error('etcd is full'))
    if (!isDrainableError(error, 'DRAIN_TIMEOUT')) throw error
    const said = error.report.members[0]?.why.map(({ text }) => text).join()
    expect(`${error.message} ${said}`).toContain('etcd is full')
    const causes: unknown[] = []
    for (let at: unknown = error; at instanceof Error; at = at.cause) causes.push(at.message)
    expect(causes).toContain('etcd is full')
  })

  test('that reports a refusal ends the drain at once', async () => {
    const { error, published } = await ended(new DrainableError('FORBIDDEN', 'no rights on web'))
    expect(error).toMatchObject({ code: 'FORBIDDEN' })
    expect(String(error)).toContain('no rights on web')
    expect(published).toBe(1)
  })
})
