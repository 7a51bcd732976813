import { envoyListener } from 'drainable/envoy-listener'
import type { MemberRef } from 'drainable/provider'
import type { ContractHarness } from 'drainable/testing'
import { startFake, type EnvoyListenerFake } from 'drainable/testing/envoy-listener'
import { describe } from 'vitest'
import { contractTests } from '../support/contract.js'
import { SKIPPED } from './skipped/envoy-listener.js'

/** Three gateways, each with an admin API of its own. */
async function open(): Promise<ContractHarness> {
  const fakes = await Promise.all([1, 2, 3].map(() => startFake()))
  let listed = fakes
  const provider = envoyListener({ admin: () => Promise.resolve(listed.map(({ url }) => url)) })
  const members = fakes.map(({ member }) => ({ pool: 'envoy', member }))
  const of = ({ member }: MemberRef): EnvoyListenerFake => {
    const fake = fakes.find((one) => one.member === member)
    if (fake === undefined) throw new Error(`there is no ${member}`)
    return fake
  }
  const every = async (fn: (fake: EnvoyListenerFake) => unknown): Promise<void> => {
    await Promise.all(fakes.map(fn))
  }
  return {
    provider,
    pool: 'envoy',
    members: members as [MemberRef, MemberRef, MemberRef],
    occupy: (ref) => of(ref).occupy(),
    setBehind: async (ref, to) => {
      if (to === 'gone') listed = listed.filter((fake) => fake !== of(ref))
      else await of(ref).setBehind(ref, to)
    },
    reload: () => every((fake) => fake.restart()),
    disconnect: () => every((fake) => fake.fail({ how: 'refuse' })),
    loseAnswer: () =>
      every((fake) => fake.fail({ match: /^POST /, how: 'reset', execute: true, times: 1 })),
    refuseChange: async (nth) => {
      const ends = fakes.map((fake) =>
        fake.fail({ match: /^POST /, how: 'status', skip: nth, times: 1 }),
      )
      return async () => {
        await Promise.all(ends.map((end) => end()))
      }
    },
    damage: async (how) => {
      const ends = fakes.map((fake) => fake.fail({ how }))
      return async () => {
        await Promise.all(ends.map((end) => end()))
      }
    },
    sockets: () => fakes.reduce((sum, { sockets }) => sum + sockets, 0),
    requests: () => fakes.reduce((sum, { requests }) => sum + requests.length, 0),
    [Symbol.asyncDispose]: async () => {
      await provider.close()
      await every((fake) => fake.close())
    },
  }
}

describe.concurrent('Envoy itself', () => {
  contractTests(SKIPPED.fake, open)
})
