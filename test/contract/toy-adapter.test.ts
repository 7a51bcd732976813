import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { providerContract, type ContractHarness } from 'drainable/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapter, entries, root } from '../../scripts/package/entries.ts'
import { written } from '../../scripts/package/written.ts'
import { SKIPPED } from './skipped/elb-example.js'

/**
 * A new adapter is one folder beside the others, its fake's folder, and one line in the list of entries: made here in a
 * copy of the repository, out of the example of docs/adapters/your-own.md.
 */
const TOY = 'toy-balancer'
const LINE = `  ...adapter('${TOY}', { about: 'toys', externals: [], kilobytes: 1, fake: { kilobytes: 1 } }),\n`

let copy: string

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'drainable-toy-'))
  for (const part of ['src', 'scripts', ...written.map(({ path }) => path)]) {
    mkdirSync(dirname(join(copy, part)), { recursive: true })
    cpSync(join(root, part), join(copy, part), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const example = (file: string): string => readFileSync(join(root, 'examples/elb', file), 'utf8')
  write(`src/adapters/${TOY}/index.ts`, example('adapter.ts'))
  write(
    `src/testing/${TOY}/index.ts`,
    example('fake.ts').replace('./adapter.ts', `drainable/${TOY}`),
  )
  const list = 'scripts/package/entries.ts'
  write(
    list,
    read(list).replace(/^ {2}entry\('endpoints'/m, (next) => LINE + next),
  )
  node('scripts/package/write-entries.ts')
}, 60_000)

afterAll(() => rmSync(copy, { recursive: true, force: true }))

test('a toy adapter takes one line in the list, and npm run entries', () => {
  const toy = adapter(TOY, { about: 'toys', externals: [], kilobytes: 1, fake: { kilobytes: 1 } })
  const at = entries.findIndex(({ name }) => name === 'endpoints')
  const more = [...entries.slice(0, at), ...toy, ...entries.slice(at)]
  for (const { path, rewrite } of written) {
    expect(read(path)).toContain(TOY)
    expect(read(path)).toBe(rewrite(readFileSync(join(root, path), 'utf8'), more))
  }
})

test('the whole contract suite passes against the toy adapter', () => {
  write('toy.test.ts', SUITE)
  const report = node(
    '--import',
    './scripts/source.mjs',
    '--test-reporter=tap',
    '--test',
    'toy.test.ts',
  )
  const said = (what: string): number =>
    Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(report)?.[1])
  const cases = providerContract(() => Promise.reject<ContractHarness>(new Error('not opened')))
  const skipped = Object.keys(SKIPPED.example).length
  expect([said('fail'), said('cancelled'), said('skipped')]).toEqual([0, 0, skipped])
  expect(said('pass')).toBe(cases.length - skipped)
}, 120_000)

/** As an adapter's author runs it, on Node's own runner. */
const SUITE = `
import { describe, test } from 'node:test'
import { awsTargetGroup as toyBalancer } from 'drainable/${TOY}'
import { providerContract } from 'drainable/testing'
import { FakeTargetGroup as ToyFake } from 'drainable/testing/${TOY}'

const pool = 'toys'

async function open() {
  const fake = new ToyFake(['a', 'b'])
  const provider = toyBalancer(pool, fake, { freshness: 10, delay: 20 })
  return {
    provider,
    pool,
    members: [{ pool, member: 'a' }, { pool, member: 'b' }],
    setBehind: async (ref, to) => fake.setBehind(ref, to),
    disconnect: async () => fake.unplug(),
    requests: () => fake.calls,
    [Symbol.asyncDispose]: () => provider.close(),
  }
}

const cases = providerContract(open)

describe('toys', { concurrency: 50 }, () => {
  for (const { name, timeout, run } of cases) test(name, { timeout }, run)
})
`

function read(path: string): string {
  return readFileSync(join(copy, path), 'utf8')
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(copy, path)), { recursive: true })
  writeFileSync(join(copy, path), text)
}

/** Runs Node in the copy; what it printed. */
function node(...args: readonly string[]): string {
  return execFileSync(process.execPath, args, { cwd: copy, encoding: 'utf8', stdio: 'pipe' })
}
