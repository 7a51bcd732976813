/**
 * What people write without this library, to set beside it: once a second each ready endpoint becomes a server, and every
 * other server is taken out.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { KubernetesStage } from './stage.js'

const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'

interface Endpoint {
  readonly addresses: readonly string[]
  readonly conditions: { readonly ready?: boolean }
  readonly targetRef?: { readonly name: string }
}

export function startPlainLoop(stage: KubernetesStage): AsyncDisposable {
  const stop = new AbortController()
  const step = async (): Promise<void> => {
    const { items } = await stage.plane.call('GET', SLICES)
    const endpoints = (items as { endpoints?: Endpoint[] }[]).flatMap((one) => one.endpoints ?? [])
    const ready = new Map<string, string>(
      endpoints.flatMap(({ conditions, targetRef, addresses }) =>
        conditions.ready === true
          ? [[`pod-${targetRef?.name ?? ''}`, addresses[0] ?? ''] as const]
          : [],
      ),
    )
    await stage.front.replace(ready)
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
