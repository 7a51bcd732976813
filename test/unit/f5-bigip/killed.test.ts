import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileTickets, ready, restore, type Ticket } from 'drainable'
import type { Clock, MemberRef } from 'drainable/provider'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/provider/clock.js'
import { ioClock } from '../../support/io-clock.js'
import { rig, until, type Rig } from './rig.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const NAMES = [1, 2, 3, 4, 5, 6].map((n) => `10.0.0.${n}:80`)
const pools = Object.fromEntries(NAMES.map((name, i) => [`pool${i}`, [name, '10.9.9.9:80']]))
const refs = NAMES.map((name, i) => ({ pool: `/Common/pool${i}`, member: `/Common/${name}` }))
const two = refs.slice(0, 2)

/** For a loaded machine: the process has to start and to log in, ms. */
const START = 100_000

/** Starts a process that drains, kills it when a request has come, and says what was left. */
async function kill(
  it: Rig,
  target: unknown,
  [at, answered]: readonly [RegExp, number],
  folder: string,
): Promise<void> {
  const { url, username, password, ca } = it.fake
  const path = join(folder, 'ca.pem')
  await writeFile(path, ca)
  const script = join(ROOT, 'test/support/f5-drain-child.ts')
  const given = [url, path, username, password, join(folder, 'tickets'), JSON.stringify(target)]
  const args = ['--import', join(ROOT, 'scripts/source.mjs'), script, ...given]
  const child = spawn(process.execPath, args, { stdio: 'ignore' })
  const hasCome = (): boolean => it.fake.requests.some(({ line }) => at.test(line))
  await until('the request has come', hasCome, START)
  // What was answered is in the ticket: it is written while the next change is on its way.
  await until('the ticket is written', async () => {
    const ticket = await fileTickets(join(folder, 'tickets')).get('killed')
    const { members = [] } = (ticket ?? {}) as Partial<Ticket>
    return members.filter(({ set }) => set !== null).length >= answered
  })
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const disabled = (it: Rig, of: readonly MemberRef[]): readonly MemberRef[] =>
  of.filter((ref) => it.fake.state(ref) !== 'ready')

test.each([
  ['the first of two changes is on its way', two, /^PATCH .*10\.0\.0\.1/, 0, 1],
  ['the second of two changes is on its way', two, /^PATCH .*10\.0\.0\.2/, 1, 1],
  ['the fourth of six changes is on its way', refs, /^PATCH .*10\.0\.0\.4/, 3, 1],
  ['the last of six changes was answered', refs, /^PATCH .*10\.0\.0\.6/, 6, 0],
])(
  'a drain killed while %s is undone by another process',
  async (_what, target, at, answered, most) => {
    const folder = await mkdtemp(join(tmpdir(), 'drainable-f5-'))
    using clock = ioClock()
    let isDead = false
    // The other process lives by the real clock; the undo waits out half a minute for what may still be carried out.
    const latency: Pick<Clock, 'setTimeout'> = {
      setTimeout: (fn, ms) => (isDead ? clock.latency : systemClock).setTimeout(fn, ms),
    }
    await using it = await rig(
      { tls: true, pools, latency: 1, clock: latency },
      { minInterval: '500ms' },
    )
    // It is carried out, and its answer does not come: the process dies meanwhile.
    const isAnswered = answered === refs.length
    const match = isAnswered ? /nothing/ : at
    const silent = it.fake.fail({ match, how: 'silent', execute: true, times: 1 })
    await kill(it, target, [at, answered], folder)
    isDead = true
    await silent()
    const tickets = fileTickets(join(folder, 'tickets'))
    const ticket = await tickets.get('killed')
    const inFlight = disabled(it, target).length
    const undone = restore(it.lb, ticket as Parameters<typeof restore>[1], { clock })
    const { members } = await clock.run(undone)
    const left = disabled(it, target)
    expect(left.length).toBeLessThanOrEqual(Math.min(most, inFlight))
    // A state of unknown owner is left alone, and reported with the way to open it.
    const named = members.filter(({ outcome }) => outcome !== 'restored')
    expect(named.map(({ ref }) => ref)).toEqual(left)
    for (const { error } of named) expect(error?.message).toContain('ready()')
    if (left.length > 0) await clock.run(ready(it.lb, left, { clock }))
    expect(disabled(it, target)).toEqual([])
    await rm(folder, { recursive: true, force: true })
  },
  240_000,
)
