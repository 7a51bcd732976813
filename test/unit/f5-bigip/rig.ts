import { f5Bigip, type F5BigipOptions } from 'drainable/f5-bigip'
import type { DrainableProvider, PresentReading, Reading } from 'drainable/provider'
import { startFake, type BigipFake, type FakeOptions } from 'drainable/testing/f5-bigip'

/** A fake and a provider on it, both closed at the end of the test. */
export interface Rig extends AsyncDisposable {
  readonly fake: BigipFake
  readonly lb: ReturnType<typeof f5Bigip>
}

export const WEB1 = { pool: '/Common/web', member: '/Common/10.0.0.1:80' }
export const WEB2 = { pool: '/Common/web', member: '/Common/10.0.0.2:80' }

/**
 * Everything fast: the waits of the defaults are for devices. Faster still would only cost the machine more looks. Without TLS,
 * which is a third of the work: the contract suite has it.
 */
export async function rig(
  fakeOptions: FakeOptions = {},
  options: Partial<F5BigipOptions> = {},
): Promise<Rig> {
  const fake = await startFake({ tls: false, ...fakeOptions })
  const lb = connect(fake, options)
  return {
    fake,
    lb,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
    },
  }
}

export function connect(
  fake: BigipFake,
  options: Partial<F5BigipOptions> = {},
): ReturnType<typeof f5Bigip> {
  return f5Bigip({
    url: fake.urls,
    username: fake.username,
    password: fake.password,
    ...(fake.ca === '' ? {} : { tls: { ca: fake.ca } }),
    freshness: '10ms',
    minInterval: '50ms',
    callTimeout: 3_000,
    ...options,
  })
}

/** The clock the core would hand over, and a signal that never fires unless given one. */
export function ctx(signal = new AbortController().signal) {
  const clock = {
    now: () => performance.now(),
    setTimeout(fn: () => void, ms: number): () => void {
      const timer = setTimeout(fn, ms)
      return () => clearTimeout(timer)
    },
  }
  return { signal, clock }
}

export async function read(
  lb: DrainableProvider,
  ref: { readonly pool: string; readonly member: string },
): Promise<Reading> {
  const { readings } = await lb.observe([ref], ctx())
  return readings[0]!
}

export async function present(
  lb: DrainableProvider,
  ref: { readonly pool: string; readonly member: string },
): Promise<PresentReading> {
  const reading = await read(lb, ref)
  if (!reading.present) throw new Error(`${ref.member} is absent`)
  return reading
}

/** Method and path of the requests from `since` on, without query. */
export function lines(fake: BigipFake, since = 0): string[] {
  return fake.requests.slice(since).map(({ method, path }) => `${method} ${path.split('?')[0]!}`)
}

/** Waits for a condition; no fixed wait. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  within = 30_000,
): Promise<void> {
  const deadline = performance.now() + within
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${within} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
