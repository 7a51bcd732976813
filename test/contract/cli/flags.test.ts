/** Every option of the command reaches the library: under its name, and as the type that it has there. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import type { Ticket } from 'drainable'
import { TestIo } from '../../support/command.js'
import { haproxyUrl } from '../../support/haproxy-url.js'
import { until } from '../../support/wait.js'

const web1 = { pool: 'web', member: 'web1' }

const POLICY: readonly (readonly [flags: readonly string[], data: object])[] = [
  [['--timeout', '2600ms'], { timeout: 2_600 }],
  [['--on-timeout', 'proceed'], { onTimeout: 'proceed' }],
  [['--hold', 'maint'], { hold: 'maint' }],
  [['--escalate-after', '1m'], { escalateAfter: 60_000 }],
  [['--settle', '1500ms'], { settle: 1_500 }],
  [['--until', 'removed'], { until: 'removed' }],
  [['--seal'], { seal: true }],
  [['--no-seal'], { seal: false }],
  [['--keep-ready', '0'], { keepReady: 0 }],
  [['--on-minimum', 'wait'], { onMinimum: 'wait' }],
  [['--on-overrule', 'reapply'], { onOverrule: 'reapply' }],
  [['--on-abort', 'restore'], { onAbort: 'restore' }],
  [['--on-unreachable', 'wait'], { onUnreachable: 'wait' }],
  [['--if-unsupported', 'proceed'], { ifUnsupported: 'proceed' }],
]

const DEFAULTS = {
  timeout: 120_000,
  onTimeout: 'fail',
  hold: 'drain',
  escalateAfter: null,
  settle: 1_000,
  until: 'idle',
  seal: null,
  keepReady: 1,
  onMinimum: 'fail',
  onOverrule: 'fail',
  onAbort: 'leave',
  onUnreachable: 'fail',
  ifUnsupported: 'fail',
}

/** The ticket of a call, as it stands once the member is held. Then the call is ended. */
async function ticketOf(verb: 'drain' | 'roll', flags: readonly string[]): Promise<Ticket> {
  const address = '10.0.0.1'
  await using fake = await startFake({
    pools: {
      web: [{ name: 'web1', address, check: true }, { name: 'web2', address, check: true }, 'web3'],
    },
    master: true,
  })
  using io = new TestIo()
  await fake.occupy(web1)
  const folder = join(io.home, 'tickets')
  const ended = io.run(
    verb,
    haproxyUrl(fake),
    ...(verb === 'roll' ? ['web/web1', 'web/web2'] : ['web/web1']),
    ...['--id', 'mine', '--owner', 'ci', '--pace', '20ms', '--tickets', folder],
    ...flags,
    ...(verb === 'roll' ? ['--', 'false'] : []),
  )
  const file = join(folder, 'mine.json')
  const ticket = await until(() => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    return /"set": ?"/.test(text) ? (JSON.parse(text) as Ticket) : undefined
  }, 'the hold is in the ticket')
  io.signal('SIGTERM')
  await ended
  return ticket
}

describe.concurrent('an option of a drain reaches the library', () => {
  test.each([[[], {}] as const, ...POLICY])('%j', async (flags, data) => {
    const { policy, owner } = await ticketOf('drain', flags)
    expect(policy).toEqual({ ...DEFAULTS, ...data })
    expect(owner.name).toBe('ci')
  })
})

const ROLL: readonly (readonly [flags: readonly string[], plan: object])[] = [
  [[], {}],
  [['--canary', '1'], { canary: 1 }],
  [['--max-unavailable', '2'], { maxUnavailable: 2 }],
  [['--max-unavailable', '100%'], { maxUnavailable: 2 }],
  [['--on-failure', 'continue'], { maxFailed: null }],
  [['--max-failed', '1'], { maxFailed: 1 }],
  [['--on-timeout', 'fail'], { postpone: false }],
  [['--wait-healthy'], { health: { by: 'balancer', limit: 30_000 } }],
  [['--wait-healthy', '45s'], { health: { by: 'balancer', limit: 45_000 } }],
  [['--no-wait-healthy'], { health: { by: 'nobody', limit: 30_000 } }],
]

describe.concurrent('an option of a roll reaches the library', () => {
  test.each(ROLL)('%j', async (flags, plan) => {
    const { roll } = await ticketOf('roll', ['--group', 'ref', ...flags])
    expect(roll?.plan).toEqual({
      canary: 0,
      maxUnavailable: 1,
      maxFailed: 0,
      postpone: true,
      health: { by: 'balancer', limit: 30_000 },
      ...plan,
    })
    expect(roll?.servers).toHaveLength(2)
  })

  test('and members of one address are one server', async () => {
    const { roll } = await ticketOf('roll', ['--group', 'address'])
    expect(roll?.servers).toHaveLength(1)
  })
})

/** What `ticketOf` gives every call, and what other files play. */
const ELSEWHERE = ['--id', '--owner', '--pace', '--group', '--expect', '--leave', '--wait-healthy']
/** The options of every verb, see `endings.test.ts`, `password.test.ts` and `places.test.ts`. */
const COMMON =
  '--report --config --username --password-file --ca --insecure --tickets --no-tickets --json --jsonl --help'

test.each([
  ['drain', [POLICY]],
  ['roll', [POLICY, ROLL]],
] as const)('every option of %s is played', async (verb, tables) => {
  using io = new TestIo()
  const { out } = await io.play(verb, '--help')
  const named = [...out.matchAll(/^ {2}(?:-h, )?(--[a-z-]+)/gm)].map(([, flag]) => flag)
  const played = tables.flatMap((table) => table.flatMap(([[flag]]) => flag ?? []))
  const known = new Set([...played, ...ELSEWHERE, ...COMMON.split(' ')])
  expect(named.filter((flag) => !known.has(flag ?? ''))).toEqual([])
})
