/**
 * What people write without this library, to set beside it: once a second each ready endpoint of a Service becomes a
 * server of the pool of that name, and every other server is taken out.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { KubernetesStage } from './stage.js'

const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'
const SERVICE = 'kubernetes.io/service-name'

interface Slice {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> }
  readonly endpoints?: readonly Endpoint[]
}

interface Endpoint {
  readonly addresses: readonly string[]
  readonly conditions: { readonly ready?: boolean }
  readonly targetRef?: { readonly name: string }
}

export function startPlainLoop(stage: KubernetesStage): AsyncDisposable {
  const stop = new AbortController()
  const step = async (): Promise<void> => {
    const { items } = await stage.plane.call('GET', SLICES)
    const services = Map.groupBy(items as Slice[], (one) => one.metadata.labels[SERVICE] ?? '')
    for (const [service, slices] of services) {
      const ready = slices
        .flatMap(({ endpoints = [] }) => endpoints)
        .filter(({ conditions }) => conditions.ready === true)
        .map((one) => [`pod-${one.targetRef?.name ?? ''}`, one.addresses[0] ?? ''] as const)
      await stage.front.replace(service, new Map(ready))
    }
  }
  const run = (async () => {
    while (!stop.signal.aborted) {
      await step().catch(() => undefined)
      await pause(1_000)
    }
  })()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await run
    },
  }
}
