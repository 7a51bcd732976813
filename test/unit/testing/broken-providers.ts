import { DrainableError, type Change, type ChangeResult } from 'drainable/provider'
import type { CallContext, DrainableProvider, Reading, Snapshot } from 'drainable/provider'
import type { FakeProvider, FakeProviderOptions } from 'drainable/testing'
import { broken } from './fake-harness.js'

function reading(change: (r: Reading, ctx: CallContext) => Reading) {
  return (fake: FakeProvider) =>
    broken(fake, {
      observe: async (refs, ctx) => {
        const snapshot = await fake.observe(refs, ctx)
        return { ...snapshot, readings: snapshot.readings.map((r) => change(r, ctx)) }
      },
    })
}

/** Changes each scope of a right provider. */
function scopes(change: (s: Reading['scopes'][number]) => object) {
  return reading((r) => ({ ...r, scopes: r.scopes.map((s) => ({ ...s, ...change(s) })) }))
}

function present(change: object) {
  return reading((r) => (r.present ? { ...r, ...change } : r))
}

/** Changes what is asked of a right provider. */
function asked(change: (c: Change) => Change) {
  return (fake: FakeProvider) =>
    broken(fake, { apply: (changes, ctx) => fake.apply(changes.map(change), ctx) })
}

/** Changes what a right provider answers. */
function answered(
  change: (r: readonly ChangeResult[], ctx: CallContext) => readonly ChangeResult[],
) {
  return (fake: FakeProvider) =>
    broken(fake, { apply: async (c, ctx) => change(await fake.apply(c, ctx), ctx) })
}

export type Hand = NonNullable<CallContext['result']>

/** Hands up the results of a right provider in a way of its own. */
function handsUp(how: (result: ChangeResult, index: number, hand: Hand) => void) {
  return (fake: FakeProvider) =>
    broken(fake, {
      apply: async (changes, { signal, clock, result: hand }) => {
        const results = await fake.apply(changes, { signal, clock })
        if (hand !== undefined) results.forEach((result, i) => how(result, i, hand))
        return results
      },
    })
}

const { signal: never } = new AbortController()

export const BREAKS: Readonly<
  Record<
    string,
    readonly [
      wrap: (fake: FakeProvider) => DrainableProvider,
      found: RegExp,
      options?: Partial<FakeProviderOptions>,
    ]
  >
> = {
  'answers for one ref a request': [
    (fake) =>
      broken(fake, {
        observe: async (refs, ctx) => {
          if (refs === 'all') return fake.observe(refs, ctx)
          const parts: Snapshot[] = []
          for (const ref of refs) parts.push(await fake.observe([ref], ctx))
          return {
            readings: parts.flatMap((p) => p.readings),
            pools: parts[0]?.pools ?? [],
          }
        },
      }),
    /one or few requests/,
  ],
  'throws for an unknown ref': [
    (fake) =>
      broken(fake, {
        observe: async (refs, ctx) => {
          const snapshot = await fake.observe(refs, ctx)
          if (snapshot.readings.some((r) => !r.present)) {
            throw new DrainableError('NOT_FOUND', 'no such member here')
          }
          return snapshot
        },
      }),
    /unknown members/,
  ],
  'leaves unknown refs out': [
    (fake) =>
      broken(fake, {
        observe: async (refs, ctx) => {
          const { readings, pools } = await fake.observe(refs, ctx)
          return { pools, readings: readings.filter((r) => r.present) }
        },
      }),
    /unknown members/,
  ],
  'has a word of its own for its maint': [
    (fake) =>
      broken(fake, {
        describe: async (ctx) => {
          const info = await fake.describe(ctx)
          return { ...info, capabilities: { ...info.capabilities, maint: 'graceful' as never } }
        },
      }),
    /describes itself/,
  ],
  'lists no scopes': [reading((r) => ({ ...r, scopes: [] })), /describes each scope/],
  'takes the time elsewhere': [scopes(() => ({ sampledAt: Date.now() })), /the clock it is given/],
  'counts with fractions': [scopes(() => ({ active: 0.5 })), /describes each scope/],
  'never counts': [scopes(() => ({ active: 0, queued: 0 })), /counts work/],
  'forgets a process that was replaced': [
    reading((r) => ({
      ...r,
      scopes: r.scopes
        .filter(({ old }) => old !== true)
        .map((s) => ({ ...s, scope: `worker ${s.incarnation}` })),
    })),
    /through a reload/,
  ],
  'answers one call at a time, and refuses the rest': [
    (fake) => {
      let busy = 0
      const alone = async <T>(call: () => Promise<T>): Promise<T> => {
        if (busy++ > 0) throw new DrainableError('CONFLICT', 'one call at a time, please')
        return call().finally(() => (busy = 0))
      }
      return broken(fake, {
        observe: (refs, ctx) => alone(() => fake.observe(refs, ctx)),
        apply: (changes, ctx) => alone(() => fake.apply(changes, ctx)),
      })
    },
    /side by side/,
  ],
  'counts no arrivals': [scopes(() => ({ arrivals: 7 })), /arrivals/],
  'never is in force': [scopes(() => ({ inForce: false })), /into force/],
  'is another process at each look': [
    scopes(() => ({ incarnation: Math.random().toString() })),
    /incarnations from look to look/,
  ],
  'gives every member one identity': [present({ identity: 'x' }), /every member asked for/],
  'changes the identity with the state': [
    reading((r) => (r.present ? { ...r, identity: r.identity + r.own } : r)),
    /keeps identity/,
  ],
  'calls every member ready': [present({ own: 'ready' }), /another client/],
  'says that a held member serves': [present({ serves: true }), /holds a member/],
  'lists no pools': [
    (fake) =>
      broken(fake, {
        observe: async (refs, ctx) => ({ ...(await fake.observe(refs, ctx)), pools: [] }),
      }),
    /counts the serving members/,
  ],
  'takes a hold for an order': [
    (fake) => {
      const lower = (c: Change) => {
        if (c.kind === 'hold' && fake.state(c.ref) === 'maint') fake.setBehind(c.ref, c.to)
      }
      return broken(fake, {
        apply: (changes, ctx) => {
          changes.forEach(lower)
          return fake.apply(changes, ctx)
        },
      })
    },
    /never lowers/,
  ],
  'restores whatever it finds': [
    (fake) =>
      broken(fake, {
        apply: (changes, ctx) => {
          const blind = changes.map((c) => {
            const own = c.kind === 'restore' && fake.state(c.ref)
            return own && own !== 'gone' ? { ...c, expect: own } : c
          })
          return fake.apply(blind, ctx)
        },
      }),
    /expected state/,
  ],
  'does not look at the identity': [
    asked((change) => {
      const copy: { -readonly [K in keyof Change]: Change[K] } = { ...change }
      delete copy.identity
      return copy as Change
    }),
    /another identity/,
  ],
  'throws for a refusal': [
    answered((results) => {
      const no = results.find((r) => r.status === 'rejected')
      if (no && 'error' in no) throw no.error
      return results
    }),
    /a refusal as a value/,
  ],
  'is silent about what it can not do': [
    answered((results) => results.map(({ ref }) => ({ ref, status: 'applied' }))),
    /cuts work where it can/,
    { capabilities: { terminate: false } },
  ],
  'hands up a result that it does not answer': [
    handsUp((result, index, hand) => {
      const { ref } = result
      const error = new DrainableError('CONFLICT', 'another result than the one answered', { ref })
      hand(index, index === 0 ? { ref, status: 'unknown', error } : result)
    }),
    /hands up each result once/,
  ],
  'hands up a result twice': [
    handsUp((result, index, hand) => {
      hand(index, result)
      hand(index, result)
    }),
    /hands up each result once/,
  ],
  'hands up refusals only': [
    handsUp((result, index, hand) => {
      if (result.status === 'rejected') hand(index, result)
    }),
    /hands up each result once/,
  ],
  'hands up results after the call': [
    handsUp((result, index, hand) => setTimeout(() => hand(index, result), 20)),
    /hands up each result once/,
  ],
  'hands up what it has not done': [
    (fake) =>
      broken(fake, {
        apply: async (changes, ctx) => {
          const results = changes.map(({ ref }) => ({ ref, status: 'applied' }) as const)
          results.forEach((result, i) => ctx.result?.(i, result))
          return results
        },
      }),
    /has done what it hands up/,
  ],
  'answers in another order': [answered((results) => [...results].reverse()), /in order/],
  'answers once for two': [answered((results) => results.slice(0, 1)), /in order/],
  'takes absent for done': [
    answered((results) =>
      results.map((r) =>
        'error' in r && r.error.code === 'NOT_FOUND' ? { ref: r.ref, status: 'unchanged' } : r,
      ),
    ),
    /gone as absent/,
  ],
  'says zero where it reads nothing': [
    (fake) =>
      broken(fake, {
        observe: async (refs, ctx) => {
          return fake.observe(refs, ctx).catch(() => ({ readings: [], pools: [] }))
        },
      }),
    /never reads a zero/,
  ],
  'throws errors of its own': [
    (fake) =>
      broken(fake, {
        observe: (refs, ctx) => {
          return fake.observe(refs, ctx).catch(() => Promise.reject(new TypeError('fetch failed')))
        },
      }),
    /can not be reached/,
  ],
  'calls a lost change refused': [
    (fake) =>
      broken(fake, {
        apply: (changes, ctx) =>
          fake.apply(changes, ctx).catch((cause: unknown) =>
            changes.map(({ ref }) => ({
              ref,
              status: 'rejected' as const,
              error: new DrainableError('UNREACHABLE', 'could not connect', { cause }),
            })),
          ),
      }),
    /a completed change as refused/,
  ],
  'does not look at the signal': [
    (fake) =>
      broken(fake, {
        apply: (changes, { clock }) => fake.apply(changes, { clock, signal: never }),
      }),
    /fired before/,
  ],
  'wraps the reason of an abort': [
    (fake) =>
      broken(fake, {
        apply: (changes, ctx) =>
          fake.apply(changes, ctx).catch((cause: unknown) => {
            throw new Error('aborted', { cause })
          }),
      }),
    /fired before/,
  ],
  'hangs, whatever the signal says': [
    (fake) =>
      broken(fake, {
        observe: (refs, { clock }) => {
          fake.failNext('hang', { verb: 'observe' })
          return fake.observe(refs, { clock, signal: never })
        },
      }),
    /signal fires, with its reason/,
  ],
  'answers after its close': [
    (fake) => broken(fake, { close: () => Promise.resolve() }),
    /after its close/,
  ],
  'says unreachable after its close': [
    (fake) => {
      let isClosed = false
      const error = new DrainableError('UNREACHABLE', 'it was closed', { retryable: false })
      return broken(fake, {
        observe: (refs, ctx) => (isClosed ? Promise.reject(error) : fake.observe(refs, ctx)),
        close: () => Promise.resolve().then(() => void (isClosed = true)),
      })
    },
    /after its close/,
  ],
  'goes on asking after its close': [
    (fake) => {
      const timer = setInterval(() => {
        void fakeCall(fake).catch(() => undefined)
      }, 20)
      return broken(fake, {
        close: () => Promise.resolve(),
        [Symbol.asyncDispose]: () => {
          clearInterval(timer)
          return Promise.resolve()
        },
      })
    },
    /after its close/,
  ],
  'forgets states that it says to keep': [
    (fake) =>
      broken(fake, {
        describe: async (ctx) => {
          const info = await fake.describe(ctx)
          return { ...info, capabilities: { ...info.capabilities, survivesReload: true } }
        },
      }),
    /at a reload/,
  ],
  'hides a reload': [scopes(() => ({ incarnation: '1' })), /at a reload/],
  'has a maint that cuts, called gentle': [
    (fake) =>
      broken(fake, {
        describe: async (ctx) => {
          const info = await fake.describe(ctx)
          return { ...info, capabilities: { ...info.capabilities, maint: 'gentle' } }
        },
      }),
    /maint that it calls gentle/,
    { capabilities: { maint: 'cuts' } },
  ],
  'invents counts': [
    scopes(() => ({ active: 1 })),
    /counts work/,
    { capabilities: { counts: 'none', terminate: false } },
  ],
  'says that a ready member is released': [
    scopes(() => ({ released: true })),
    /counts work/,
    { capabilities: { counts: 'none', terminate: false } },
  ],
  'removes by disabling': [
    asked((c) => (c.kind === 'remove' ? { ...c, kind: 'hold', to: 'maint' } : c)),
    /removes a member/,
  ],
  'adds at another address': [
    asked((c) => (c.kind === 'add' ? { ...c, address: '203.0.113.9' } : c)),
    /adds a member/,
  ],
  'tells its password': [
    (fake) => broken(fake, { instance: 'https://admin:secret@balancer' }),
    /describes itself/,
  ],
}

function fakeCall(fake: FakeProvider): Promise<unknown> {
  const clock = { now: () => 0, setTimeout: () => () => undefined }
  return fake.observe('all', { signal: never, clock })
}
