/** A lease in a Lease object, against an API that refuses what the real one refuses. */
import type { Lease, LeaseGrant } from 'drainable'
import { kubernetesLease } from 'drainable/kubernetes'
import { callContext } from 'drainable/provider'
import { fakeClock } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { FakeKube, secondsOf } from '../../support/kube-api/server.js'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/edge/leases'
const TTL = 15_000

function leaseOn(kube: FakeKube): Lease {
  return kubernetesLease(kube.config, { namespace: 'edge', name: 'controller' })
}

const clock = fakeClock()
const context = callContext({ clock })

async function granted(lease: Lease, holder: string): Promise<LeaseGrant> {
  const answer = await lease.acquire(holder, TTL, context)
  if (!answer.granted) throw new Error(`held by ${String(answer.holder)}`)
  return { holder, fence: answer.fence }
}

describe('a lease of Kubernetes', () => {
  it('is an object that kubectl can show', async () => {
    await using kube = await FakeKube.start()
    await granted(leaseOn(kube), 'host-a/1')
    expect(kube.get(LEASES, 'controller')?.['spec']).toEqual({
      holderIdentity: 'host-a/1',
      leaseDurationSeconds: 15,
      leaseTransitions: 0,
      acquireTime: expect.stringMatching(/\.\d{6}Z$/) as string,
      renewTime: expect.stringMatching(/\.\d{6}Z$/) as string,
    })
  })

  it('has one holder, whose name the others are told', async () => {
    await using kube = await FakeKube.start()
    const [a, b] = [leaseOn(kube), leaseOn(kube)]
    const first = await granted(a, 'a')
    expect(await b.acquire('b', TTL, context)).toEqual({ granted: false, holder: 'a' })
    expect(await granted(a, 'a')).toEqual(first)
    expect(await a.renew(first, TTL, context)).toBe(true)
    expect(await b.renew({ holder: 'b', fence: first.fence }, TTL, context)).toBe(false)
  })

  it('goes to one of twenty that ask at once', async () => {
    await using kube = await FakeKube.start()
    const all = Array.from({ length: 20 }, () => leaseOn(kube))
    let last = 0
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(all.map((one, n) => one.acquire(`h${n}`, TTL, context)))
      const winners = answers.flatMap((answer, n) => (answer.granted ? [{ n, ...answer }] : []))
      expect(winners).toHaveLength(1)
      const [{ n, fence } = { n: 0, fence: 0 }] = winners
      expect(fence).toBeGreaterThan(last)
      last = fence
      await all[n]?.release({ holder: `h${n}`, fence }, context)
    }
  })

  it('is free once it was seen unchanged for its whole time', async () => {
    await using kube = await FakeKube.start()
    const [a, b] = [leaseOn(kube), leaseOn(kube)]
    const first = await granted(a, 'a')
    expect((await b.acquire('b', TTL, context)).granted).toBe(false)
    await clock.advance(14_000)
    expect(await a.renew(first, TTL, context)).toBe(true)
    await clock.advance(14_000)
    expect((await b.acquire('b', TTL, context)).granted).toBe(false)
    await clock.advance(14_999)
    expect((await b.acquire('b', TTL, context)).granted).toBe(false)
    await clock.advance(1)
    const second = await granted(b, 'b')
    expect(second.fence).toBeGreaterThan(first.fence)
    expect(await a.renew(first, TTL, context)).toBe(false)
    await a.release(first, context)
    expect(await b.renew(second, TTL, context)).toBe(true)
  })

  it('is free at once when its holder gives it up', async () => {
    await using kube = await FakeKube.start()
    const [a, b] = [leaseOn(kube), leaseOn(kube)]
    const first = await granted(a, 'a')
    await a.release(first, context)
    expect((await granted(b, 'b')).fence).toBeGreaterThan(first.fence)
  })

  it('belongs to whoever wrote it although the answer was lost', async () => {
    await using kube = await FakeKube.start()
    const lease = leaseOn(kube)
    kube.trouble = ({ method }) => (method === 'POST' ? 'lost' : undefined)
    await expect(lease.acquire('a', TTL, context)).rejects.toMatchObject({
      code: 'CONNECTION_LOST',
    })
    kube.trouble = () => undefined
    const grant = await granted(lease, 'a')
    kube.trouble = ({ method }) => (method === 'PUT' ? 'lost' : undefined)
    await expect(lease.renew(grant, TTL, context)).rejects.toMatchObject({
      code: 'CONNECTION_LOST',
    })
    kube.trouble = () => undefined
    expect(await lease.renew(grant, TTL, context)).toBe(true)
  })

  it('keeps rising after its object was deleted and made anew', async () => {
    await using kube = await FakeKube.start()
    const first = await granted(leaseOn(kube), 'a')
    kube.remove(LEASES, 'controller')
    const spec = { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 }
    const made = kube.put(LEASES, { metadata: { name: 'controller' }, spec } as never)
    made.metadata['creationTimestamp'] = secondsOf(new Date(Date.now() + 2_000))
    expect((await granted(leaseOn(kube), 'b')).fence).toBeGreaterThan(first.fence)
  })

  it('was deleted: its holder has it no more', async () => {
    await using kube = await FakeKube.start()
    const lease = leaseOn(kube)
    const grant = await granted(lease, 'a')
    kube.remove(LEASES, 'controller')
    expect(await lease.renew(grant, TTL, context)).toBe(false)
    await lease.release(grant, context)
  })

  it('ends a call by its signal, and writes nothing after', async () => {
    await using kube = await FakeKube.start()
    kube.trouble = () => 'hang'
    const stop = new AbortController()
    const trying = leaseOn(kube).acquire('a', TTL, callContext({ signal: stop.signal }))
    stop.abort(new Error('enough'))
    await expect(trying).rejects.toThrow('enough')
    expect(kube.calls('leases', 'write')).toEqual([])
  })

  it('without a right says which', async () => {
    await using kube = await FakeKube.start()
    kube.trouble = () => ({ status: 403, text: '{"message":"leases is forbidden"}' })
    await expect(leaseOn(kube).acquire('a', TTL, context)).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: 'read Lease edge/controller: 403 Forbidden: leases is forbidden',
    })
  })

  it('refuses an object of another client', async () => {
    await using kube = await FakeKube.start()
    kube.trouble = () => ({ status: 200, text: '{"metadata":{"name":"controller"}}' })
    await expect(leaseOn(kube).acquire('a', TTL, context)).rejects.toMatchObject({
      code: 'MALFORMED_REPLY',
    })
  })

  it.each([
    {},
    { namespace: 'edge' },
    { namespace: 'edge', name: 'A' },
    { namespace: 'e', name: 'n', ttl: 1 },
  ])('refuses options %j', (options) => {
    const config = { getCurrentCluster: () => null, applyToHTTPSOptions: () => Promise.resolve() }
    expect(() => kubernetesLease(config, options as never)).toThrow(/kubernetesLease\(\)/)
  })
})
