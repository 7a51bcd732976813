import type { DrainableProvider, MemberRef } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import type { ContractHarness, FakeProvider, FakeProviderOptions } from 'drainable/testing'

/** The harness of the in-memory provider; `wrap` lets a test break the provider in one way. */
export async function openFake(
  options: Partial<FakeProviderOptions> = {},
  wrap: (fake: FakeProvider) => DrainableProvider = (fake) => fake,
): Promise<ContractHarness> {
  const members: [MemberRef, MemberRef, MemberRef] = [
    { pool: 'web', member: 'web1' },
    { pool: 'web', member: 'web2' },
    { pool: 'web', member: 'web3' },
  ]
  const fake = fakeProvider({ pools: { web: members.map((m) => m.member) }, ...options })
  const counted = options.capabilities?.counts !== 'none'
  return {
    provider: wrap(fake),
    pool: 'web',
    members,
    ...(counted && {
      occupy: async (ref) => {
        const end = fake.occupy(ref)
        return async () => end()
      },
    }),
    setBehind: async (ref, to) => fake.setBehind(ref, to),
    reload: async () => fake.reload(),
    disconnect: async () => fake.disconnect(),
    loseAnswer: async () => fake.failNext('throw-after', { verb: 'apply' }),
    requests: () => fake.requests.length,
    [Symbol.asyncDispose]: () => fake.close(),
  }
}

/** A provider that is right in everything but one. */
export function broken(fake: FakeProvider, part: Partial<DrainableProvider>): DrainableProvider {
  return {
    specVersion: 1,
    name: fake.name,
    instance: fake.instance,
    describe: (ctx) => fake.describe(ctx),
    observe: (refs, ctx) => fake.observe(refs, ctx),
    apply: (changes, ctx) => fake.apply(changes, ctx),
    close: () => fake.close(),
    [Symbol.asyncDispose]: () => fake.close(),
    ...part,
  }
}
