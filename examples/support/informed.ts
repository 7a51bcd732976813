/**
 * A list of Kubernetes objects that is kept whole for as long as a controller runs, over the informers of
 * `@kubernetes/client-node` 2. These begin anew by themselves after `410 Gone` only: at any other error they
 * stop for good, and what they list grows old in silence.
 */
import { systemClock, type Clock } from 'drainable/provider'

/** What is used of an informer: those that `makeInformer` of `@kubernetes/client-node` gives have it. */
export interface InformerLike<T> {
  on(event: 'add' | 'update' | 'delete' | 'error', listener: (what: T) => void): void
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
 * @param changed - called after each change, and when the list becomes whole or old
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

  function begin(): void {
    const own = make()
    informer = own
    const isCurrent = (): boolean => !stopped && informer === own
    const told = (): void => {
      if (isCurrent() && synced) changed()
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
      changed()
    }
    own.on('error', end)
    own.start().then(() => {
      if (!isCurrent()) return
      synced = true
      failures = 0
      changed()
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
