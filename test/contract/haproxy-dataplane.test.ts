import { providerContract, type ContractHarness } from 'drainable/testing'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, test } from 'vitest'
import { connect } from '../support/dataplane.js'

const MEMBERS = ['web1', 'web2', 'web3'] as const

async function open(
  version: string,
  options: Parameters<typeof connect>[1],
  cutsWhenDown = false,
): Promise<ContractHarness> {
  const fake = await startFake({
    pools: { web: MEMBERS.map((name) => ({ name, cutsWhenDown })), other: ['web1'] },
    version,
    reloadDelay: 20,
  })
  const provider = connect(fake, options)
  const [a, b, c] = MEMBERS.map((member) => ({ pool: 'web', member }))
  return {
    provider,
    pool: 'web',
    members: [a!, b!, c!],
    occupy: (ref) => fake.occupy(ref),
    setBehind: (ref, to) => fake.setBehind(ref, to),
    reload: () => fake.reload(),
    disconnect: () => fake.close(),
    loseAnswer: async () => {
      fake.fail({ match: /^PUT /, how: 'reset', execute: true, times: 1 })
    },
    damage: async (how) => fake.fail({ how }),
    sockets: () => fake.sockets,
    // what somebody else opens is put back by a durable drain: the case could not begin again
    ...(options?.durable === true
      ? {}
      : {
          refuseChange: async (nth) =>
            fake.fail({ match: /^(PUT|POST|DELETE) /, how: 'status', skip: nth, times: 1 }),
        }),
    stranger: () => {
      const password = 'not-the-password'
      return { provider: connect(fake, { ...options, password }), password }
    },
    requests: () => fake.requests.length,
    [Symbol.asyncDispose]: async () => {
      await provider.close()
      await fake.close()
    },
  }
}

// the cases wait for the API's floor between two looks most of the time: side by side they cost little
describe.concurrent.each(['2.9', '3.0', '3.2', '3.4'])('Data Plane API %s', (version) => {
  for (const c of providerContract(() => open(version, {}))) test(c.name, c.run, c.timeout)
})

describe.concurrent('with maintCuts', () => {
  for (const c of providerContract(() => open('3.2', { maintCuts: true }, true))) {
    test(c.name, c.run, c.timeout)
  }
})

describe.concurrent('with durable drains', () => {
  for (const c of providerContract(() => open('3.2', { durable: true, maintCuts: false }))) {
    test(c.name, c.run, c.timeout)
  }
})

describe.concurrent('with membership in the configuration', () => {
  for (const c of providerContract(() => open('3.2', { membership: 'configuration' }))) {
    test(c.name, c.run, c.timeout)
  }
})
