import { combineProviders, type CombineOptions, type DrainableProvider } from 'drainable'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'
import type { TicketStore } from 'drainable'

export const a1 = { pool: 'web', member: 'web1', balancer: 'a' }
export const b1 = { pool: 'web', member: 'web1', balancer: 'b' }
export const bare = { pool: 'web', member: 'web1' }

/** Two balancers in memory with the same pool and the same servers, and one provider for both. */
export function setUp(
  options: CombineOptions = {},
  own: {
    a?: Partial<Parameters<typeof fakeProvider>[0]>
    b?: Partial<Parameters<typeof fakeProvider>[0]>
  } = {},
): { clock: FakeClock; a: FakeProvider; b: FakeProvider; all: DrainableProvider } {
  const clock = fakeClock(1_000)
  const pools = { web: ['web1', 'web2', 'web3'] }
  const a = fakeProvider({ pools, clock, instance: 'a', ...own.a })
  const b = fakeProvider({ pools, clock, instance: 'b', ...own.b })
  return { clock, a, b, all: combineProviders({ a, b }, options) }
}

/** A store of other processes: everything goes through JSON. */
export function jsonStore(): TicketStore & { readonly map: Map<string, string> } {
  const map = new Map<string, string>()
  return {
    map,
    get: async (key) => (map.has(key) ? (JSON.parse(map.get(key)!) as unknown) : undefined),
    set: async (key, value) => map.set(key, JSON.stringify(value)),
    delete: async (key) => map.delete(key),
    keys: () => map.keys(),
  }
}
