import { combineProviders, type MemberRef } from 'drainable'
import { fakeProvider, type ContractHarness } from 'drainable/testing'
import { describe } from 'vitest'
import { contractTests } from '../support/contract.js'
import { SKIPPED } from './skipped/combined.js'

/** Two balancers as one; the cases work on a pool of the first. */
async function open(): Promise<ContractHarness> {
  const east = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, instance: 'east' })
  const west = fakeProvider({ pools: { api: ['api1', 'api2'] }, instance: 'west' })
  const provider = combineProviders({ east, west })
  const named = (member: string): MemberRef => ({ balancer: 'east', pool: 'web', member })
  const own = ({ pool, member }: MemberRef): MemberRef => ({ pool, member })
  return {
    provider,
    pool: 'web',
    members: [named('web1'), named('web2'), named('web3')],
    occupy: async (ref) => {
      const end = east.occupy(own(ref))
      return async () => end()
    },
    setBehind: async (ref, to) => east.setBehind(own(ref), to),
    reload: async () => east.reload(),
    disconnect: async () => {
      east.disconnect()
      west.disconnect()
    },
    loseAnswer: async () => east.failNext('throw-after', { verb: 'apply' }),
    requests: () => east.requests.length,
    async [Symbol.asyncDispose]() {
      await provider.close()
      await east.close()
      await west.close()
    },
  }
}

describe('a combined provider', () => {
  contractTests(SKIPPED.fake, open)
})
