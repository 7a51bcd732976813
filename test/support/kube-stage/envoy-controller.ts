/** The controller of docs/kubernetes.md over Envoy: it owns the file of endpoints of one cluster. */
import { KubeConfig } from '@kubernetes/client-node'
import { reconcile } from 'drainable'
import { formatAddress } from 'drainable/endpoints'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { followService, kubernetesLease, kubernetesTickets } from 'drainable/kubernetes'
import { say, untilAsked } from '../../../examples/kubernetes/support/balancer.ts'

const { ENVOY_FILE: path = '', ENVOY_ADMIN: admin = '' } = process.env
const config = new KubeConfig()
config.loadFromDefault()
const signal = untilAsked()

await using lb = envoy({ endpoints: fileEndpoints({ cluster: 'web', path }), admin: [admin] })
await using loop = reconcile(lb, {
  pools: ['web'],
  owns: () => true, // whoever owns the set owns each endpoint in it
  lease: kubernetesLease(config, { namespace: 'drainable', name: 'drainable-controller' }),
  tickets: kubernetesTickets(config, { namespace: 'drainable' }),
  timeout: '2m',
  signal,
})
loop.on('leading', (leading) => say('leading', { leading }))
loop.on('fault', ({ code, message }) => say('fault', { code, message }))
const web = { namespace: 'shop', service: 'web', port: 'http', pool: 'web' }
await using pods = followService(loop, config, web, {
  signal,
  name: ({ address, port }) => formatAddress(address, port),
})
pods.on('set', (members) => say('set', { endpoints: members.length }))
pods.on('problem', ({ code, message }) => say('problem', { code, message }))
await loop.done
