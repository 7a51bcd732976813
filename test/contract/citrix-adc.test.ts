import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import type { ContractHarness } from 'drainable/testing'
import { type FakeOptions, startFake } from 'drainable/testing/citrix-adc'
import type { DrainableProvider } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/provider/clock.js'
import { selfSignedCertificate } from '../../src/testing/tls-certificate.js'
import { setups } from '../support/cases.js'
import { contractTests, NAMES_PLAYED } from '../support/contract.js'
import { sentSecrets } from '../support/sent-secrets.js'
import { SKIPPED } from './skipped/citrix-adc.js'

const GROUP = {
  pool: 'sg web',
  members: [
    { pool: 'sg web', member: '10.0.0.1:80' },
    { pool: 'sg web', member: 'web2:8080' },
    { pool: 'sg web', member: '[2001:db8::3]:80' },
  ],
} as const

const VSERVER = {
  pool: 'vs api',
  members: [
    { pool: 'vs api', member: 'svc one' },
    { pool: 'vs api', member: 'svc2' },
  ],
} as const

/** An appliance of its own for each case, quick enough for a test: it looks at its members fifty times a second. */
async function open(
  { pool, members }: typeof GROUP | typeof VSERVER,
  fakeOptions: FakeOptions = {},
  options: Partial<CitrixAdcOptions> = {},
): Promise<ContractHarness> {
  const fake = await startFake({
    tick: 20,
    password: 'adc-4f71c2',
    pools: { 'sg web': GROUP.members.map(({ member }) => member), other: ['10.0.0.1:81'] },
    vservers: { 'vs api': VSERVER.members.map(({ member }) => member) },
    ...fakeOptions,
  })
  const client = selfSignedCertificate()
  const sent = sentSecrets(fake.url, fake.password, client.key)
  const connect = (password: string): DrainableProvider =>
    citrixAdc({
      url: fake.urls,
      username: fake.username,
      password,
      freshness: '50ms',
      ...(fake.ca === '' ? {} : { tls: { ca: fake.ca, cert: client.cert, key: client.key } }),
      ...options,
    })
  const provider = connect(fake.password)
  return {
    provider,
    pool,
    members,
    occupy: (ref) => fake.occupy(ref),
    setBehind: (ref, to) => fake.setBehind(ref, to),
    reload: () => fake.restart(),
    disconnect: () => {
      fake.fail({ how: 'refuse' })
      return Promise.resolve()
    },
    loseAnswer: () => {
      fake.fail({ match: /action=disable|object=/, how: 'reset', execute: true, times: 1 })
      return Promise.resolve()
    },
    damage: async (how) => fake.fail({ how }),
    secrets: sent.secrets,
    sockets: () => fake.sockets,
    refuseChange: async (nth) =>
      fake.fail({ match: /action=disable|object=/, how: 'status', skip: nth, times: 1 }),
    stranger: () => ({ provider: connect('not-the-password'), password: 'not-the-password' }),
    requests: () => fake.requests.length,
    async [Symbol.asyncDispose]() {
      sent.end()
      await provider.close()
      await fake.close()
    },
  }
}

/** A build before 13.0 says OUT OF SERVICE, and not whether the disable was graceful: see the test below. */
const NOT_TOLD = {
  'sees what another client does': 'it does not tell a drain from a disable',
  'restores only if the expected state is found': 'it does not tell a drain from a disable',
} as const

const SETUPS = {
  'service group members of 12.1': ['group', () => open(GROUP, { version: '12.1', tls: false })],
  'services of a virtual server of 14.1': ['services', () => open(VSERVER, { version: '14.1' })],
  'a pair, header authentication, saved states': [
    'group',
    () => open(GROUP, { ha: true }, { auth: 'headers', save: true }),
  ],
  // Of members whose connections outlive a disable nothing can be cut.
  'plain HTTP, empty answers to actions, connections that outlive a disable': [
    'lasting',
    () =>
      open(GROUP, {
        tls: false,
        actionReply: 'empty',
        loneObjects: true,
        tokenIn: 'cookie',
        pools: {
          'sg web': {
            downstateflush: 'DISABLED',
            members: GROUP.members.map(({ member }) => member),
          },
        },
      }),
  ],
} as const

const PLAYED = [
  'services of a virtual server of 14.1',
  'a pair, header authentication, saved states',
]

for (const [name, [setup, harness]] of setups(SETUPS, PLAYED)) {
  const silent = name.includes('12.1')
  describe(name, { concurrent: true }, () => {
    const others = name.startsWith('services') ? {} : NAMES_PLAYED
    contractTests(SKIPPED[setup], harness, silent ? NOT_TOLD : others)
    if (silent) {
      test('a drain set by another client is never read as less than a drain', async () => {
        await using opened = await harness()
        const { provider, members } = opened
        const { signal } = new AbortController()
        const own = async () => {
          const { readings } = await provider.observe([members[0]], { signal, clock: systemClock })
          return readings[0]?.present === true ? readings[0].own : 'gone'
        }
        await opened.setBehind(members[0], 'drain')
        await expect.poll(own).toMatch(/^(drain|maint)$/)
        await opened.setBehind(members[0], 'ready')
        await expect.poll(own).toBe('ready')
        await opened.setBehind(members[0], 'maint')
        await expect.poll(own).toBe('maint')
      })
    }
    if (setup !== 'lasting') return
    test('refuses, as a value, to cut what a disable does not cut', async () => {
      await using opened = await harness()
      const { provider, members } = opened
      const [ref] = members
      const { signal } = new AbortController()
      const ctx = { signal, clock: systemClock }
      await opened.occupy?.(ref)
      await provider.apply([{ kind: 'hold', ref, to: 'drain' }], ctx)
      const [result] = await provider.apply([{ kind: 'terminate', ref }], ctx)
      expect(result).toMatchObject({ status: 'rejected', error: { code: 'UNSUPPORTED' } })
    })
  })
}
