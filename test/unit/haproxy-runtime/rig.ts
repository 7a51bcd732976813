import { haproxyRuntime, type HaproxyRuntimeOptions } from 'drainable/haproxy-runtime'
import type { CallContext, Change, ChangeResult, DrainableProvider } from 'drainable/provider'
import { startFake, type HaproxyFake, type FakeOptions } from 'drainable/testing/haproxy-runtime'
import { shortPauses } from '../../support/short-pauses.js'

/** What one test works with: a fake and a provider on it. */
export interface Rig extends AsyncDisposable {
  readonly fake: HaproxyFake
  readonly lb: DrainableProvider
}

export const WEB1 = { pool: 'web', member: 'web1' }
export const WEB2 = { pool: 'web', member: 'web2' }

/** A fake with a provider on it. */
export async function rig(
  fakeOptions: FakeOptions = {},
  options: Partial<HaproxyRuntimeOptions> = {},
): Promise<Rig> {
  const fake = await startFake(fakeOptions)
  const lb = haproxyRuntime({ socket: fake.socket, ...options })
  return {
    fake,
    lb,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
    },
  }
}

/** A real clock, and a signal that never fires unless one is given. */
export function context(
  signal: AbortSignal = new AbortController().signal,
  result?: CallContext['result'],
): CallContext {
  const clock = {
    now: () => performance.now(),
    setTimeout: (fn: () => void, ms: number) => {
      const timer = setTimeout(fn, ms)
      return () => clearTimeout(timer)
    },
  }
  return { signal, clock, ...(result && { result }) }
}

/** A clock whose pauses take no time: patience is over at once. */
export function hurried(onNow: () => void = () => undefined): CallContext {
  return { ...context(), clock: shortPauses(onNow) }
}

/** The result of one change. */
export async function change(lb: DrainableProvider, one: Change): Promise<ChangeResult> {
  const [result] = await lb.apply([one], context())
  return result!
}
