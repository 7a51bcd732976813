import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileTickets, ready, restore, type Ticket } from 'drainable'
import { type DataplaneFake, startFake } from 'drainable/testing/haproxy-dataplane'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, present, until, warm } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }
const POOLS = { web: ['web1', 'web2'].map((name) => ({ name, weight: 7 })) }
const DURABLE = { durable: true, maintCuts: false } as const

/** A write: the mark and the drain, then the mark and the maint of the seal. */
interface Kill {
  readonly write: 1 | 2 | 3 | 4 | 'held'
  /** Whether the API carries out what it has not answered yet. */
  readonly execute: boolean
  readonly version: '2.9' | '3.2'
}

const KILLS: readonly Kill[] = [
  ...([1, 2, 3, 4] as const).flatMap((write) =>
    [true, false].map((execute) => ({
      write,
      execute,
      version: execute === (write % 2 === 0) ? ('2.9' as const) : ('3.2' as const),
    })),
  ),
  { write: 'held', execute: true, version: '3.2' },
]

const idOf = ({ write, execute }: Kill): string => `drain-${write}-${execute}`
const fakes = new Map<Kill, DataplaneFake>()
let folder = ''

/** A draining process that is killed at that write, or once it holds the member. */
async function killed(kill: Kill, child: string): Promise<void> {
  const { write, execute, version } = kill
  const fake = await startFake({ version, pools: POOLS })
  fakes.set(kill, fake)
  const skip = write === 'held' ? 0 : write - 1
  if (write !== 'held') fake.fail({ match: /^PUT/, how: 'silent', skip, times: 1, execute })
  const one = spawn(process.execPath, [child, fake.url, folder, idOf(kill)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(one, 'exit')
  let held = false
  one.stdout.on('data', () => (held = true))
  const sent = (): boolean =>
    write === 'held' ? held : fake.requests.filter(({ method }) => method === 'PUT').length >= write
  await until(`write ${write}`, () => Promise.resolve(sent()), 200_000)
  one.kill('SIGKILL')
  await ended
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drainable-dataplane-'))
  const child = join(folder, 'child.mjs')
  const source = new URL('../../support/dataplane-drain-child.ts', import.meta.url)
  const js =
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)"
  await build({
    entryPoints: [fileURLToPath(source)],
    outfile: child,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    banner: { js },
    logLevel: 'error',
  })
  await Promise.all(KILLS.map((kill) => killed(kill, child)))
}, 240_000)

afterAll(async () => {
  await Promise.all([...fakes.values()].map((fake) => fake.close()))
  await rm(folder, { recursive: true, force: true })
})

/** The marks in the file, the mask and the weight at run time. */
async function stateOf(fake: DataplaneFake): Promise<string> {
  const line = /server web1 .*/.exec(fake.config)?.[0] ?? ''
  const [, , row = ''] = (await fake.run('show servers state web')).split('\n')
  const [mask = '', weight] = row.split(' ').slice(6, 8)
  const bits = Number(mask) & 0x0b // 4 stays where the process was started with `disabled` in the file
  return `${/ disabled/.test(line) ? 'disabled ' : ''}${/weight \d+/.exec(line)?.[0]}, ${bits}, ${weight}`
}

const OPEN = 'weight 7, 0, 7'

describe('a durable drain whose process is killed', () => {
  test.each(KILLS)(
    'at write $write, executed $execute on $version, leaves nothing',
    async (kill) => {
      const fake = fakes.get(kill)!
      await fake.reload()
      await using lb = connect(fake, DURABLE)
      const ticket = (await fileTickets(folder).get(idOf(kill))) as Ticket
      await warm(fake)
      using clock = ioClock()
      const report = await clock.run(restore(lb, ticket, { clock }))
      // An intended change has no certain owner: it is left alone and reported, and ready() opens it.
      if (report.outcome !== 'restored') {
        expect(String(report.members[0]!.error)).toContain('ready() opens it')
        await clock.run(ready(lb, WEB1, { timeout: '10m', clock }))
      }
      expect(await stateOf(fake)).toBe(OPEN)
      await fake.reload()
      expect(await stateOf(fake)).toBe(OPEN)
      await using eyes = connect(fake) // by another clock
      expect(await present(eyes, WEB1)).toMatchObject({ own: 'ready', serves: true })
    },
  )
})
