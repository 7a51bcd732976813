/** A lease and tickets on a real API server, by the client that people use. */
import { KubeConfig } from '@kubernetes/client-node'
import { kubernetesLease, kubernetesTickets, type KubeConfigLike } from 'drainable/kubernetes'
import { callContext } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { startControlPlane } from '../../../scripts/endpoint-timelines/control-plane.ts'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'

async function open(program: string) {
  const plane = await startControlPlane(program)
  const config = new KubeConfig()
  config.loadFromString(plane.kubeconfig())
  const client: KubeConfigLike = config
  return { plane, client, [Symbol.asyncDispose]: () => plane[Symbol.asyncDispose]() }
}

describe.each(engines('kube'))('on Kubernetes $version', (engine) => {
  test('a lease goes from a frozen holder to one other', async () => {
    await using kube = await open(engine.path)
    const leaseOf = () => kubernetesLease(kube.client, { namespace: 'default', name: 'edge' })
    const all = Array.from({ length: 12 }, leaseOf)
    let last = 0
    for (let round = 0; round < 10; round += 1) {
      const tries = all.map((lease, n) => lease.acquire(`host-${n}`, 60_000, callContext()))
      const won = (await Promise.all(tries)).flatMap((one, n) =>
        one.granted ? [{ ...one, n }] : [],
      )
      expect(won).toHaveLength(1)
      const [{ fence, n } = { fence: 0, n: 0 }] = won
      expect(fence).toBeGreaterThan(last)
      last = fence
      const grant = { holder: `host-${n}`, fence }
      expect(await all[n]?.renew(grant, 60_000, callContext())).toBe(true)
      await all[n]?.release(grant, callContext())
    }
    const frozen = await leaseOf().acquire('frozen', 1_000, callContext())
    if (!frozen.granted) throw new Error('it was free')
    const next = leaseOf()
    await eventually(async () => {
      expect((await next.acquire('next', 60_000, callContext())).granted).toBe(true)
    })
    const grant = { holder: 'frozen', fence: frozen.fence }
    expect(await leaseOf().renew(grant, 1_000, callContext())).toBe(false)
  })

  test('tickets are kept, listed, and not written over', async () => {
    await using kube = await open(engine.path)
    const storeOf = () => kubernetesTickets(kube.client, { namespace: 'default' })
    const [a, b] = [storeOf(), storeOf()]
    const keys = ['release:42', 'A', 'a', '...', 'x'.repeat(200)]
    for (const key of keys) await a.set(key, { key })
    expect([...(await b.keys())].sort()).toEqual([...keys].sort())
    expect(await b.get('a')).toEqual({ key: 'a' })
    await b.set('a', { key: 'a', by: 'b' })
    await expect(a.set('a', {})).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(a.set('big', 'x'.repeat(1_100_000))).rejects.toMatchObject({ code: 'REJECTED' })
    for (const key of keys) await b.delete(key)
    expect(await a.keys()).toEqual([])
    expect(await a.get('a')).toBeUndefined()
  })
})
