import type { ContractHarness } from 'drainable/testing'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe } from 'vitest'
import { setups } from '../support/cases.js'
import { contractTests, NAMES_PLAYED } from '../support/contract.js'
import { connect } from '../support/dataplane.js'
import { sentSecrets } from '../support/sent-secrets.js'
import { SKIPPED } from './skipped/haproxy-dataplane.js'

const PASSWORD = 'dataplane-4f71c2'
const MEMBERS = ['web1', 'web2', 'web3'] as const

async function open(
  version: string,
  options: Parameters<typeof connect>[1],
  cutsWhenDown = false,
): Promise<ContractHarness> {
  const fake = await startFake({
    pools: { web: MEMBERS.map((name) => ({ name, cutsWhenDown })), other: ['web1'] },
    version,
    password: PASSWORD,
    reloadDelay: 20,
  })
  const sent = sentSecrets(fake.url, PASSWORD)
  const provider = connect(fake, { password: PASSWORD, ...options })
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
    secrets: sent.secrets,
    sockets: () => fake.sockets,
    // what another client opens is put back by a durable drain: the case could not begin again
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
      sent.end()
      await provider.close()
      await fake.close()
    },
  }
}

type Setup = readonly [keyof typeof SKIPPED, () => Promise<ContractHarness>]

const SETUPS: Readonly<Record<string, Setup>> = {
  'Data Plane API 2.9': ['fake', () => open('2.9', {})],
  'Data Plane API 3.0': ['fake', () => open('3.0', {})],
  'Data Plane API 3.2': ['fake', () => open('3.2', {})],
  'Data Plane API 3.4': ['fake', () => open('3.4', {})],
  'with maintCuts': ['maintCuts', () => open('3.2', { maintCuts: true }, true)],
  'with durable drains': ['durable', () => open('3.2', { durable: true, maintCuts: false })],
  'with membership in the configuration': [
    'fake',
    () => open('3.2', { membership: 'configuration' }),
  ],
}

/** One of /v2, one of /v3: these play the names too. */
const VERSIONS = ['Data Plane API 2.9', 'Data Plane API 3.4']

// The cases wait for the API's floor between two looks most of the time: side by side they cost little.
for (const [name, [skipped, harness]] of setups(SETUPS, [...VERSIONS, 'with durable drains']))
  describe.concurrent(name, () => {
    contractTests(SKIPPED[skipped], harness, VERSIONS.includes(name) ? {} : NAMES_PLAYED)
  })
