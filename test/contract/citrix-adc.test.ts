import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import { type ContractHarness, providerContract } from 'drainable/testing'
import { type FakeOptions, startFake } from 'drainable/testing/citrix-adc'
import type { DrainableProvider } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/provider/clock.js'

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
    pools: { 'sg web': GROUP.members.map(({ member }) => member), other: ['10.0.0.1:81'] },
    vservers: { 'vs api': VSERVER.members.map(({ member }) => member) },
    ...fakeOptions,
  })
  const connect = (password: string): DrainableProvider =>
    citrixAdc({
      url: fake.urls,
      username: fake.username,
      password,
      freshness: '50ms',
      ...(fake.ca === '' ? {} : { tls: { ca: fake.ca } }),
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
    sockets: () => fake.sockets,
    refuseChange: async (nth) =>
      fake.fail({ match: /action=disable|object=/, how: 'status', skip: nth, times: 1 }),
    stranger: () => ({ provider: connect('not-the-password'), password: 'not-the-password' }),
    requests: () => fake.requests.length,
    async [Symbol.asyncDispose]() {
      await provider.close()
      await fake.close()
    },
  }
}

const SETUPS: Readonly<Record<string, () => Promise<ContractHarness>>> = {
  'service group members of 12.1': () => open(GROUP, { version: '12.1' }),
  'services of a virtual server of 14.1': () => open(VSERVER, { version: '14.1' }),
  'a pair, header authentication, saved states': () =>
    open(GROUP, { ha: true }, { auth: 'headers', save: true }),
  'plain HTTP, empty answers to actions, connections that outlive a disable': () =>
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
}

/** Of members whose connections outlive a disable nothing can be cut: that is refused, see the test below. */
const NOTHING_TO_CUT = 'cuts work where it can, and says so where it can not'

/** A build before 13.0 says OUT OF SERVICE, and not whether the disable was graceful: see the test below. */
const NOT_TOLD = ['sees what somebody else does', 'restores only where the expected state is found']

for (const [name, harness] of Object.entries(SETUPS)) {
  const lasting = name.includes('outlive')
  const silent = name.includes('12.1')
  describe(name, { concurrent: true }, () => {
    for (const each of providerContract(harness)) {
      if (lasting && each.name === NOTHING_TO_CUT) continue
      if (silent && NOT_TOLD.includes(each.name)) continue
      test(each.name, each.run, each.timeout)
    }
    if (silent) {
      test('a drain by others is never less than a drain', async () => {
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
    if (!lasting) return
    test('refuses to cut what a disable does not cut, as a value', async () => {
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
