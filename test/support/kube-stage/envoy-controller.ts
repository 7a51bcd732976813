/** The controller of docs/kubernetes.md over Envoy: it owns the files of endpoints of its clusters. */
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { reconcile } from 'drainable'
import { formatAddress } from 'drainable/endpoints'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { followService, kubernetesLease, kubernetesTickets } from 'drainable/kubernetes'
import { say, untilAsked } from '../../../examples/kubernetes/support/balancer.ts'

const { ENVOY_FOLDER: folder = '', ENVOY_ADMIN: admin = '' } = process.env
const { SERVICE = 'shop/web', POOL = 'web' } = process.env
const pools = POOL.split(',')
const services = SERVICE.split(',').map((name, i) => {
  const [namespace = '', service = ''] = name.split('/')
  return { namespace, service, port: 'http', pool: pools[i] ?? service }
})
const config = new KubeConfig()
config.loadFromDefault()
const signal = untilAsked()

const files = pools.map((cluster) => ({ cluster, path: join(folder, `${cluster}.json`) }))
await using tickets = kubernetesTickets(config, { namespace: 'drainable' })
await using lb = envoy({ endpoints: fileEndpoints(files), admin: [admin] })
await using loop = reconcile(lb, {
  pools,
  owns: () => true, // whoever owns the set owns each endpoint in it
  lease: kubernetesLease(config, { namespace: 'drainable', name: 'drainable-controller' }),
  tickets,
  timeout: '2m',
  signal,
})
loop.on('leading', (leading) => say('leading', { leading }))
loop.on('fault', ({ code, message }) => say('fault', { code, message }))
await using pods = followService(loop, config, services, {
  signal,
  name: ({ address, port }) => formatAddress(address, port),
})
pods.on('set', (members) => say('set', { endpoints: members.length }))
pods.on('problem', ({ code, message }) => say('problem', { code, message }))
await loop.done
