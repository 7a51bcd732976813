/**
 * An operator of one balancer, to be killed by its parent. Its argument is JSON: settings, folder of tickets, custom
 * resource and nodes.
 */
import { fileTickets } from 'drainable'
import { Operator, type LoadBalancerSpec } from '../../examples/operator/operator.js'
import { backendOf, type Settings } from './operator-backend.js'

export interface ChildWork {
  readonly settings: Settings
  readonly path: string
  readonly spec: LoadBalancerSpec
  readonly nodes: readonly unknown[]
}

const { settings, path, spec, nodes } = JSON.parse(process.argv[2] ?? '') as ChildWork
const operator = new Operator([backendOf(settings)], fileTickets(path))
operator.sync(spec, nodes)
setInterval(() => {
  if (operator.status().some(({ phase }) => phase === 'draining')) process.send?.('draining')
}, 20)
