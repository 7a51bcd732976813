import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { ContractHarness } from 'drainable/testing'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { describe } from 'vitest'
import { setups } from '../support/cases.js'
import { contractTests, NAMES_PLAYED } from '../support/contract.js'
import { SKIPPED } from './skipped/haproxy-runtime.js'

const SETUPS = {
  '2.6 (fake), with a master socket': ['2.6', true],
  '3.0 (fake)': ['3.0', false],
  '3.2 (fake), with a master socket': ['3.2', true],
  '3.2 (fake)': ['3.2', false],
} as const

const PLAYED = ['2.6 (fake), with a master socket', '3.2 (fake)']

describe.concurrent.each(setups(SETUPS, PLAYED))('Runtime API %s', (_, [version, master]) => {
  async function open(): Promise<ContractHarness> {
    const fake = await startFake({ pools: { web: ['web1', 'web2', 'web3'] }, version, master })
    const provider = haproxyRuntime({
      socket: fake.socket,
      ...(fake.master === undefined ? {} : { master: fake.master }),
      replyTimeout: '5s',
    })
    const ref = (member: string): { pool: string; member: string } => ({ pool: 'web', member })
    return {
      provider,
      pool: 'web',
      members: [ref('web1'), ref('web2'), ref('web3')],
      occupy: (member) => fake.occupy(member),
      setBehind: (member, to) => fake.setBehind(member, to),
      reload: () => fake.reload(),
      disconnect: () => fake.close(),
      loseAnswer: async () => {
        fake.fail({ match: /set server/, how: 'reset', execute: true, times: 1 })
      },
      damage: async (how) => fake.fail({ how }),
      sockets: () => fake.sockets,
      refuseChange: async (nth) =>
        fake.fail({
          match: /set server|able server|set weight/,
          how: 'status',
          skip: nth,
          times: 1,
        }),
      requests: () => fake.requests.length,
      async [Symbol.asyncDispose]() {
        await provider.close()
        await fake.close()
      },
    }
  }
  contractTests(SKIPPED.fake, open, version === '2.6' ? {} : NAMES_PLAYED)
})
