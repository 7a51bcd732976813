import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileTickets, ready, restore, type Ticket, type TicketStore } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { type CitrixFake, startFake } from 'drainable/testing/citrix-adc'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { quickClock } from '../../support/quick-clock.js'

const MACHINE = '10.0.0.1'
const ID = 'deploy'
/** Changes in one request: what is unanswered when the process dies. */
const LIST = 10
const GROUPS = Array.from({ length: 3 * LIST }, (_, i) => `sg${i}`)

/** Nobody waits here for what an appliance may still carry out. */
const QUICK = quickClock(8)

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

/** Kills the process while this list is carried out and not answered, and what came before is in the ticket. */
async function killedAt(fake: CitrixFake, list: number, store: TicketStore): Promise<void> {
  const silent = { how: 'silent', execute: true, skip: list - 1, times: 1 } as const
  fake.fail({ match: /action=disable/, ...silent })
  const process = spawn('node', [child, fake.url, folder, MACHINE, `${ID}-${list}`], {
    stdio: 'ignore',
  })
  const ended = once(process, 'exit')
  await eventually(async () => {
    expect(fake.requests.filter(({ line }) => line.includes('action=disable'))).toHaveLength(list)
    const ticket = (await store.get(`${ID}-${list}`)) as Ticket | undefined
    const applied = ticket?.members.filter(({ changes }) =>
      changes.some(({ state }) => state === 'applied'),
    )
    expect(applied).toHaveLength(LIST * (list - 1))
  })
  process.kill('SIGKILL')
  await ended
}

test.concurrent.each([1, 2, 3])('killed at list %i of 3: it is undone, or named', async (list) => {
  await using fake = await startFake({
    tls: false,
    tick: 20,
    pools: Object.fromEntries(GROUPS.map((name) => [name, [`${MACHINE}:80`, '10.0.0.2:80']])),
  })
  const store = fileTickets(folder)
  await killedAt(fake, list, store)
  await eventually(() => expect(disabled(fake)).toBe(LIST * list))
  const login = { username: 'admin', password: 'secret' }
  // By the quick clock a call takes eight times as long.
  await using adc = citrixAdc({ url: fake.url, ...login, callTimeout: '3m' })
  const ticket = await store.get(`${ID}-${list}`)
  const { members } = await restore(adc, ticket as Ticket, { clock: QUICK })
  const left = members.filter(({ outcome }) => outcome !== 'restored')
  expect(disabled(fake)).toBe(LIST)
  expect(left).toHaveLength(LIST)
  for (const { error } of left) expect(String(error)).toContain('ready() opens it')
  await ready(
    adc,
    left.map(({ ref }) => ref),
  )
  expect(disabled(fake)).toBe(0)
})
