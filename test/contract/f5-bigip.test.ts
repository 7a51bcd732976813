import { f5Bigip, type F5BigipOptions } from 'drainable/f5-bigip'
import type { DrainableProvider } from 'drainable/provider'
import type { ContractHarness } from 'drainable/testing'
import { startFake, type BigipFake, type FakeOptions } from 'drainable/testing/f5-bigip'
import { describe } from 'vitest'
import { setups } from '../support/cases.js'
import { contractTests, NAMES_PLAYED } from '../support/contract.js'
import { sentSecrets } from '../support/sent-secrets.js'

import { selfSignedCertificate } from '../../src/testing/tls-certificate.js'
import { SKIPPED } from './skipped/f5-bigip.js'

const MEMBERS = ['10.0.0.1:80', '10.0.0.2%1:80', '2001:db8::3.80'] as const

interface Case {
  readonly fake: FakeOptions
  readonly options?: Partial<F5BigipOptions>
  /** What a reload is for this case. */
  readonly reload: (fake: BigipFake) => Promise<void>
}

async function open({ fake: given, options, reload }: Case): Promise<ContractHarness> {
  const fake = await startFake({
    pools: { web: MEMBERS, other: ['10.0.0.1:81'] },
    password: 'bigip-4f71c2',
    ...given,
  })
  const client = selfSignedCertificate()
  const sent = sentSecrets(fake.url, fake.password, client.key)
  const connect = (password: string): DrainableProvider =>
    f5Bigip({
      url: fake.urls,
      username: fake.username,
      password,
      ...(fake.ca === '' ? {} : { tls: { ca: fake.ca, cert: client.cert, key: client.key } }),
      freshness: `${given.statsLag ?? 10}ms`,
      minInterval: '20ms',
      ...options,
    })
  const provider = connect(fake.password)
  const [a, b, c] = MEMBERS.map((member) => ({ pool: '/Common/web', member: `/Common/${member}` }))
  return {
    provider,
    pool: '/Common/web',
    members: [a!, b!, c!],
    occupy: (ref) => fake.occupy(ref),
    setBehind: (ref, to) => fake.setBehind(ref, to),
    reload: () => reload(fake),
    disconnect: () => fake.close(),
    loseAnswer: async () => {
      fake.fail({ match: /^PATCH /, how: 'reset', execute: true, times: 1 })
    },
    damage: async (how) => fake.fail({ how }),
    secrets: sent.secrets,
    sockets: () => fake.sockets,
    refuseChange: async (nth) =>
      fake.fail({ match: /^PATCH /, how: 'status', skip: nth, times: 1 }),
    stranger: () => ({ provider: connect('not-the-password'), password: 'not-the-password' }),
    requests: () => fake.requests.length,
    timeScale: 2,
    [Symbol.asyncDispose]: async () => {
      sent.end()
      await provider.close()
      await fake.close()
    },
  }
}

const reboot = (fake: BigipFake): Promise<void> => fake.restart({ ms: 60 })
const failover = (fake: BigipFake): Promise<void> => fake.failover()

// TLS is a third of the work, and reaches a case alike in every version: two of the setups have it.
const CASES: Readonly<Record<string, Case>> = {
  '13.1 with a reboot that forgets': { fake: { version: '13.1', tls: false }, reload: reboot },
  '15.1 with a reboot after a save': {
    fake: { version: '15.1' },
    options: { save: true },
    reload: reboot,
  },
  '17.1 over plain HTTP with Basic': {
    fake: { version: '17.1', tls: false },
    options: { auth: 'basic' },
    reload: reboot,
  },
  'a pair of 17.5 with a failover that was not synced': {
    fake: { version: '17.5', pair: true },
    reload: failover,
  },
  'a pair of 21.0 that syncs by itself, statistics that lag': {
    fake: { version: '21.0', pair: { autoSync: true }, statsLag: 60, tls: false },
    options: { save: true },
    reload: failover,
  },
}

const PLAYED = [
  '13.1 with a reboot that forgets',
  'a pair of 17.5 with a failover that was not synced',
]

describe.concurrent.each(setups(CASES, PLAYED))('BIG-IP %s', (name, given) => {
  const played = name === Object.keys(CASES)[0] ? {} : NAMES_PLAYED
  contractTests(SKIPPED.fake, () => open(given), played)
})
