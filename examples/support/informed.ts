/**
 * A list of Kubernetes objects that is kept whole for as long as a controller runs, over the informers of
 * `@kubernetes/client-node` 2. These begin anew by themselves after `410 Gone` only: at any other error they
 * stop for good, and what they list grows old in silence.
 */
import { systemClock, type Clock } from 'drainable/provider'

/** What is used of an informer: `ListWatch` and `makeInformer` of `@kubernetes/client-node` have it. */
export interface InformerLike<T> {
  on(event: 'add' | 'update' | 'delete', listener: (object: T) => void): void
  on(event: 'error', listener: (error: unknown) => void): void
  /** Resolves once the list is whole. */
  start(): Promise<void>
  stop(): Promise<void>
  list(): readonly T[]
}

/** A list, and whether it is whole. */
export interface Informed<T> {
  readonly items: readonly T[]
  /** `false`: it is not whole yet, or not watched any more. Nothing is to be concluded from what it lacks. */
  readonly synced: boolean
  /** Stops for good. */
  stop(): Promise<void>
}

const RETRY_FROM = 1_000
const RETRY_TO = 60_000

/**
 * Starts an informer, and another one after each error, with growing waits: a new one lists everything again, so
 * what went meanwhile is gone from the list as well.
 *
 * @param make - a new informer, not started
 * @param changed - called when the list has changed, or has become whole or old: once for all that came at once, because
 * an informer that lists anew takes out first what went and tells of it before it takes in what came
 * @param failed - told of each error
 */
export function keepInformed<T>(
  make: () => InformerLike<T>,
  changed: () => void,
  failed: (error: unknown) => void,
  clock: Clock = systemClock,
): Informed<T> {
  let informer: InformerLike<T> | undefined
  let synced = false
  let stopped = false
  let failures = 0
  let cancel = (): void => undefined
  let telling = false

  function tell(): void {
    if (telling) return
    telling = true
    queueMicrotask(() => {
      telling = false
      if (!stopped) changed()
    })
  }

  function begin(): void {
    const own = make()
    informer = own
    const isCurrent = (): boolean => !stopped && informer === own
    const told = (): void => {
      if (isCurrent() && synced) tell()
    }
    for (const event of ['add', 'update', 'delete'] as const) own.on(event, told)
    const end = (error: unknown): void => {
      if (!isCurrent()) return
      informer = undefined
      synced = false
      failed(error)
      void own.stop().catch(() => undefined)
      cancel = clock.setTimeout(begin, Math.min(RETRY_TO, RETRY_FROM * 2 ** failures))
      failures += 1
      tell()
    }
    own.on('error', end)
    own.start().then(() => {
      if (!isCurrent()) return
      synced = true
      failures = 0
      tell()
    }, end)
  }

  begin()
  return {
    get items() {
      return informer?.list() ?? []
    },
    get synced() {
      return synced
    },
    async stop() {
      stopped = true
      synced = false
      cancel()
      await informer?.stop()
    },
  }
}
