import * as z from 'zod/mini'
import { clockOption, fn, matching, signalOption } from '../provider/option-schemas.js'
import { systemClock, type Clock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { once, parseOptions } from '../provider/options.js'
import { KubeApi, type KubeConfigLike, type KubeObject } from './api.js'
import { Feed } from './feed.js'

/** Which objects {@link followObjects} keeps, and who is told. */
export interface ObjectsOptions {
  /** The path of the list, such as `/api/v1/namespaces/shop/pods`. */
  readonly path: string
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  /** Told of the whole list, once for all that changed at once. */
  readonly changed: (objects: readonly KubeObject[]) => void
  /** Told when a call failed (it is tried again), and with undefined when all is well again. */
  readonly problem?: ((error: DrainableError | undefined) => void) | undefined
  /** Ends it, as `close` does. */
  readonly signal?: AbortSignal | undefined
  /** The clock of limits and waits. @defaultValue the system's */
  readonly clock?: Clock | undefined
}

/** A list of objects that is kept whole. */
export interface ObjectFollower extends AsyncDisposable {
  /** The objects as known last: empty before the first list, and never a part of one. */
  readonly objects: readonly KubeObject[]
  /** Whether the list is whole, and watched now. */
  readonly synced: boolean
  /** Ends it: every call of the API ends at once. */
  close(): Promise<void>
}

const schema = once(() =>
  z.strictObject({
    path: matching(/^\/api/, "expected a path of the API, such as '/api/v1/nodes'"),
    labelSelector: z.exactOptional(z.string()),
    fieldSelector: z.exactOptional(z.string()),
    changed: fn<ObjectsOptions['changed']>(),
    problem: z.exactOptional(fn<NonNullable<ObjectsOptions['problem']>>()),
    signal: z.exactOptional(signalOption()),
    clock: z._default(clockOption(), () => systemClock),
  }),
)

/**
 * Keeps a list of objects whole for as long as it runs, with the limits and the patience of `followService`: for Pods,
 * Nodes, or whatever else a controller goes by.
 *
 * @param config - a `KubeConfig` of `@kubernetes/client-node`
 * @throws `INVALID_OPTIONS` at once; everything else is a `problem`
 *
 * @example
 * ```ts
 * import { followObjects, type KubeConfigLike } from 'drainable/kubernetes'
 *
 * export function nodes(config: KubeConfigLike, signal: AbortSignal) {
 *   const changed = (all: readonly object[]) => console.log(`${all.length} Nodes`)
 *   return followObjects(config, { path: '/api/v1/nodes', changed, signal })
 * }
 * ```
 */
export function followObjects(config: KubeConfigLike, options: ObjectsOptions): ObjectFollower {
  const subject = 'followObjects()'
  const { path, labelSelector, fieldSelector, changed, problem, signal, clock } = parseOptions(
    schema(),
    options,
    subject,
  )
  const stop = new AbortController()
  let cancel: (() => void) | undefined
  const tell = (): void => {
    cancel ??= clock.setTimeout(() => {
      cancel = undefined
      changed([...feed.items.values()])
    }, 0)
  }
  const spec = { what: path, path, labelSelector, fieldSelector }
  const listener = {
    told: tell,
    failed: (error?: DrainableError) => queueMicrotask(() => problem?.(error)),
  }
  const feed = new Feed(new KubeApi(config, subject, { clock }), spec, listener, stop.signal, clock)
  const close = async (): Promise<void> => {
    signal?.removeEventListener('abort', abort)
    cancel?.()
    stop.abort(new DrainableError('CONFLICT', 'the follower was closed'))
    await feed.done
  }
  const abort = (): void => void close()
  if (signal?.aborted === true) abort()
  else signal?.addEventListener('abort', abort, { once: true })
  return {
    get objects() {
      return [...feed.items.values()]
    },
    get synced() {
      return feed.synced && !stop.signal.aborted
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
