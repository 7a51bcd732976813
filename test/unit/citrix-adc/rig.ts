import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import type { CallContext, Change, ChangeResult, DrainableProvider } from 'drainable/provider'
import { type CitrixFake, type FakeOptions, startFake } from 'drainable/testing/citrix-adc'

/** What one test works with: a fake and a provider on it. */
export interface Rig extends AsyncDisposable {
  readonly fake: CitrixFake
  readonly adc: DrainableProvider
}

export const WEB1 = { pool: 'web', member: '10.0.0.1:80' }
export const WEB2 = { pool: 'web', member: '10.0.0.2:80' }

/**
 * An appliance that looks at its members fifty times a second, with a provider on it. Without TLS, which is a third of the work:
 * the contract suite has it.
 */
export async function rig(
  fakeOptions: FakeOptions = {},
  options: Partial<CitrixAdcOptions> = {},
): Promise<Rig> {
  const fake = await startFake({
    tls: false,
    tick: 20,
    pools: { web: [WEB1.member, WEB2.member] },
    ...fakeOptions,
  })
  const adc = citrixAdc({
    url: fake.urls,
    username: 'admin',
    password: 'secret',
    freshness: '200ms',
    ...(fake.ca === '' ? {} : { tls: { ca: fake.ca } }),
    ...options,
  })
  return {
    fake,
    adc,
    async [Symbol.asyncDispose]() {
      await adc.close()
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

/** The result of one change. */
export async function change(adc: DrainableProvider, one: Change): Promise<ChangeResult> {
  const [result] = await adc.apply([one], context())
  return result!
}
