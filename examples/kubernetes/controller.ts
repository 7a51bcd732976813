/**
 * A controller that keeps the servers of a HAProxy as a Service says: pods are added when they are ready, drained when
 * they leave, and removed when they are idle. Of several replicas one leads, by a Lease; tickets are ConfigMaps.
 *
 *     HAPROXY=10.0.0.2:9999 HAPROXY_MASTER=10.0.0.2:9998 SERVICE=shop/web PORT=http POOL=web node controller.ts
 *
 * `controller.yaml` has its Deployment, its account and all rights that it needs.
 */
import { KubeConfig } from '@kubernetes/client-node'
import { reconcile } from 'drainable'
import { followService, kubernetesLease, kubernetesTickets } from 'drainable/kubernetes'
import { balancerOf, isSetUp, say, untilAsked } from './support/balancer.ts'

async function run(env: NodeJS.ProcessEnv): Promise<void> {
  const [namespace = '', service = ''] = (env['SERVICE'] ?? 'default/web').split('/')
  const { POOL: pool = service, PORT: port = 'http', NAMESPACE: own = 'drainable' } = env
  const config = new KubeConfig()
  config.loadFromDefault()
  const signal = untilAsked()

  await using lb = balancerOf(env)
  await using loop = reconcile(lb, {
    pools: [pool],
    owns: ({ ref }) => ref.member.startsWith('pod-'),
    lease: kubernetesLease(config, { namespace: own, name: 'drainable-controller' }),
    tickets: kubernetesTickets(config, { namespace: own }),
    timeout: '2m',
    signal,
  })
  loop.on('leading', (leading) => say('leading', { leading }))
  loop.on('fault', ({ code, message }) => say('fault', { code, message }))
  loop.on('status', (all) => {
    say('status', { members: all.map((one) => [one.ref.member, one.phase, one.want, one.held]) })
  })
  await using pods = followService(loop, config, { namespace, service, port, pool }, { signal })
  pods.on('set', (members) => say('set', { endpoints: members.length }))
  pods.on('problem', ({ code, message }) => say('problem', { code, message }))
  pods.on('synced', (synced) => say('synced', { synced }))
  await loop.done
}

if (isSetUp('HAPROXY, SERVICE, PORT and POOL')) await run(process.env)
