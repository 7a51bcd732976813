/** A StatefulSet of one on every product: its pod comes back under its name, at another address. */
import { reconcile, type DesiredMember } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { callContext, type DrainableProvider } from 'drainable/provider'
import { startFake as startHaproxy } from 'drainable/testing/haproxy-runtime'
import { startFake as startDataPlane } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { connect as connectDataPlane } from '../support/dataplane.js'
import { eventually } from '../support/eventually.js'
import { rig as bigip } from '../unit/f5-bigip/rig.js'
import { rig as citrix } from '../unit/citrix-adc/rig.js'

interface Product {
  readonly lb: DrainableProvider
  /** The name of the pool, as the provider lists it. */
  readonly pool: string
  /** What the pod is called in it. */
  readonly name: string
  /** A reload in mid-drain leaves a process that can't be seen: what was drained stays. */
  readonly keeps?: boolean
}

const FIRST = '10.0.0.1'

async function onHaproxy(stack: AsyncDisposableStack): Promise<Product> {
  const pools = { web: [{ name: 'web-0', address: FIRST, port: 80 }] }
  const fake = stack.use(await startHaproxy({ pools }))
  const lb = stack.use(haproxyRuntime({ socket: fake.socket }))
  return { lb, pool: 'web', name: 'web-0' }
}

async function onDataPlane(
  stack: AsyncDisposableStack,
  membership: 'runtime' | 'configuration',
): Promise<Product> {
  const pools = { web: [{ name: 'web-0', address: FIRST, port: 80 }] }
  const fake = stack.use(await startDataPlane({ pools, reloadDelay: 20 }))
  const lb = stack.use(connectDataPlane(fake, { membership }))
  return { lb, pool: 'web', name: 'web-0', keeps: membership === 'configuration' }
}

async function onBigip(stack: AsyncDisposableStack, name: string): Promise<Product> {
  const pools = { web: [{ name: 'web-0:80', address: FIRST }] }
  const { lb } = stack.use(await bigip({ pools }))
  return { lb, pool: '/Common/web', name }
}

async function onCitrix(stack: AsyncDisposableStack, name: string): Promise<Product> {
  const pools = { web: [{ name: 'web-0:80', address: FIRST }] }
  const { adc } = stack.use(await citrix({ pools, tls: false }))
  return { lb: adc, pool: 'web', name }
}

const PRODUCTS: readonly [string, (stack: AsyncDisposableStack) => Promise<Product>][] = [
  ['HAProxy', onHaproxy],
  ['the Data Plane API, at run time', (stack) => onDataPlane(stack, 'runtime')],
  ['the Data Plane API, in the file', (stack) => onDataPlane(stack, 'configuration')],
  ['BIG-IP', (stack) => onBigip(stack, 'web-0:80')],
  ['BIG-IP, by a name without a port', (stack) => onBigip(stack, 'web-0')],
  ['NetScaler', (stack) => onCitrix(stack, 'web-0:80')],
  ['NetScaler, by a name without a port', (stack) => onCitrix(stack, 'web-0')],
]

/** Where the members are; those that serve only, where a reload keeps the others. */
async function addresses({ lb, pool, keeps }: Product): Promise<string[]> {
  const { readings } = await lb.observe('all', callContext())
  return readings.flatMap((one) => {
    const counts = one.present && one.ref.pool === pool && (one.own === 'ready' || !keeps)
    return counts ? [one.address ?? ''] : []
  })
}

describe('the pod of a StatefulSet of one', { concurrent: true }, () => {
  test.each(PRODUCTS)('is the only member each time it comes back on %s', async (_, open) => {
    await using stack = new AsyncDisposableStack()
    const product = await open(stack)
    const { lb, pool, name } = product
    const loop = stack.use(reconcile(lb, { pools: [pool], owns: () => true, settle: '50ms' }))
    // The third time its name is free again, but for what the product keeps of members that were there.
    for (const address of ['10.0.0.2', '10.0.0.3', FIRST]) {
      const pod: DesiredMember = { pool, member: name, address, port: 80, state: 'serve' }
      loop.set([pod])
      const only = async (): Promise<void> => {
        expect(await addresses(product), JSON.stringify(loop.status())).toEqual([address])
      }
      await eventually(only, 40_000)
    }
  })
})
