/**
 * A controller that keeps the servers of a HAProxy as Services say: pods are added when they are ready, drained when
 * they leave, and removed when they are idle. Of several replicas one leads, by a Lease; tickets are ConfigMaps.
 *
 *     HAPROXY=10.0.0.2:9999 HAPROXY_MASTER=10.0.0.2:9998 SERVICE=shop/web PORT=http POOL=web node controller.ts
 *
 * Of several Services each has its port and its pool at the same place: `SERVICE=shop/web,shop/api POOL=web,api`.
 * `controller.yaml` has its Deployment, its account and all rights that it needs.
 */
import { KubeConfig } from '@kubernetes/client-node'
import { reconcile } from 'drainable'
import {
  followService,
  kubernetesLease,
  kubernetesTickets,
  type FollowedService,
} from 'drainable/kubernetes'
import { balancerOf, isSetUp, say, untilAsked } from './support/balancer.ts'

async function run(env: NodeJS.ProcessEnv): Promise<void> {
  const { NAMESPACE: own = 'drainable' } = env
  const services = servicesOf(env)
  const config = new KubeConfig()
  config.loadFromDefault()
  const signal = untilAsked()

  await using tickets = kubernetesTickets(config, { namespace: own })
  await using lb = balancerOf(env)
  await using loop = reconcile(lb, {
    pools: services.map(({ pool }) => pool),
    owns: ({ ref }) => ref.member.startsWith('pod-'),
    lease: kubernetesLease(config, { namespace: own, name: 'drainable-controller' }),
    tickets,
    timeout: '2m',
    signal,
  })
  loop.on('leading', (leading) => say('leading', { leading }))
  loop.on('fault', ({ code, message }) => say('fault', { code, message }))
  loop.on('status', (all) => {
    say('status', { members: all.map((one) => [one.ref.member, one.phase, one.want, one.held]) })
  })
  await using pods = followService(loop, config, services, { signal })
  pods.on('set', (members) => say('set', { endpoints: members.length }))
  pods.on('problem', ({ code, message }) => say('problem', { code, message }))
  pods.on('synced', (synced) => say('synced', { synced }))
  await loop.done
}

function servicesOf({ SERVICE = 'default/web', PORT = 'http', POOL }: NodeJS.ProcessEnv) {
  const [ports, pools] = [PORT.split(','), POOL?.split(',') ?? []]
  return SERVICE.split(',').map((name, i): FollowedService => {
    const [namespace = '', service = ''] = name.split('/')
    return { namespace, service, port: ports[i] ?? ports[0] ?? 'http', pool: pools[i] ?? service }
  })
}

if (isSetUp('HAPROXY, SERVICE, PORT and POOL')) await run(process.env)
