import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileTickets, ready, restore, type Ticket, type TicketStore } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import type { Clock } from 'drainable/provider'
import { type CitrixFake, startFake } from 'drainable/testing/citrix-adc'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { ioClock } from '../../support/io-clock.js'
import { systemClock } from '../../../src/provider/clock.js'

const MACHINE = '10.0.0.1'
const ID = 'deploy'
/** Changes in one request: what is unanswered when the process dies. */
const LIST = 10
/** For a loaded machine: the process has to start, to log in, and to write its ticket, ms. */
const START = 50_000
const GROUPS = Array.from({ length: 3 * LIST }, (_, i) => `sg${i}`)

let folder = ''
let child = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drainable-citrix-'))
  child = join(folder, 'child.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('../../support/citrix-drain-child.ts', import.meta.url))],
    outfile: child,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
    },
    logLevel: 'error',
  })
}, 60_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

function disabled(fake: CitrixFake): number {
  const refs = GROUPS.map((pool) => ({ pool, member: `${MACHINE}:80` }))
  return refs.filter((ref) => !fake.look(ref).enabled).length
}

/** Kills the process while this list is carried out without an answer. The earlier lists are in the ticket. */
async function killedAt(fake: CitrixFake, list: number, store: TicketStore): Promise<void> {
  const silent = { how: 'silent', execute: true, skip: list - 1, times: 1 } as const
  fake.fail({ match: /action=disable/, ...silent })
  const one = spawn(process.execPath, [child, fake.url, folder, MACHINE, `${ID}-${list}`], {
    stdio: 'ignore',
  })
  const ended = once(one, 'exit')
  await eventually(async () => {
    expect(fake.requests.filter(({ line }) => line.includes('action=disable'))).toHaveLength(list)
    const ticket = (await store.get(`${ID}-${list}`)) as Ticket | undefined
    const applied = ticket?.members.filter(({ set }) => set !== null)
    expect(applied).toHaveLength(LIST * (list - 1))
  }, START)
  one.kill('SIGKILL')
  await ended
}

test.each([1, 2, 3])(
  'a drain killed at list %i of 3 is undone, or named',
  { timeout: 240_000 },
  async (list) => {
    using clock = ioClock()
    let isDead = false
    // The other process lives by the real clock; the undo waits out what may still be carried out.
    const latency: Pick<Clock, 'setTimeout'> = {
      setTimeout: (fn, ms) => (isDead ? clock.latency : systemClock).setTimeout(fn, ms),
    }
    await using fake = await startFake({
      tls: false,
      tick: 20,
      latency: 1,
      clock: latency,
      pools: Object.fromEntries(GROUPS.map((name) => [name, [`${MACHINE}:80`, '10.0.0.2:80']])),
    })
    const store = fileTickets(folder)
    await killedAt(fake, list, store)
    await eventually(() => expect(disabled(fake)).toBe(LIST * list))
    isDead = true
    const login = { username: 'admin', password: 'secret' }
    await using adc = citrixAdc({ url: fake.url, ...login })
    const ticket = await store.get(`${ID}-${list}`)
    const { members } = await clock.run(restore(adc, ticket as Ticket, { clock }))
    const left = members.filter(({ outcome }) => outcome !== 'restored')
    expect(disabled(fake)).toBe(LIST)
    expect(left).toHaveLength(LIST)
    for (const { error } of left) expect(String(error)).toContain('ready() opens it')
    const refs = left.map(({ ref }) => ref)
    await clock.run(ready(adc, refs, { clock }))
    expect(disabled(fake)).toBe(0)
  },
)
