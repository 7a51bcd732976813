import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { kubeVersion } from '../../../scripts/engines/kube.ts'
import { isCi } from '../../support/skipped.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const ALL = { haproxy: ['2.6.12', '3.0.11', '3.2.26'], envoy: ['1.39.3', '1.40.0'] }
const FIRST = ['haproxy-2.6', 'haproxy-3.0', 'haproxy-3.2']
const SECOND = ['envoy-1.40', 'envoy-1.39']
/** Beside the balancers: what leases are kept in. */
const STORES = ['redis', 'nats']
/** What is built when asked for. */
const PLANES = ['go-control-plane', 'kube']

interface Subset {
  readonly what: string
  readonly haproxy?: readonly string[]
  readonly envoy?: readonly string[]
  /** Whether the servers for leases are missing too. */
  readonly noStores?: true
  /** Whether the control planes that are built when asked for are there. */
  readonly planes?: true
  readonly missing: readonly string[]
}

/** What a person may have installed. */
const SUBSETS: readonly Subset[] = [
  { what: 'nothing', noStores: true, missing: [...FIRST, ...SECOND, ...STORES, ...PLANES] },
  {
    what: 'the HAProxy of the demo',
    haproxy: ['3.0.11'],
    missing: ['haproxy-2.6', 'haproxy-3.2', ...SECOND, ...PLANES],
  },
  { what: 'everything', ...ALL, planes: true, missing: [] },
]

interface Collected {
  readonly status: number | null
  readonly stderr: string
  readonly files: readonly {
    readonly name: string
    readonly message: string
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
  }[]
}

/** Loads every file of engine tests beside an engines folder that lists these versions; no engine is started. */
async function collect(
  { haproxy, envoy, noStores, planes }: Partial<Subset>,
  ci = '',
): Promise<Collected> {
  const folder = await mkdtemp(join(tmpdir(), 'drainable-engines-'))
  try {
    const list = (versions: readonly string[] = []): unknown[] =>
      versions.map((version) => {
        const series = version.split('.', 2).join('.')
        return { version, series, path: process.execPath, from: 'script' }
      })
    const stores = list(noStores === true ? [] : ['7.0.15'])
    const manifest = {
      ...{ haproxy: list(haproxy), envoy: list(envoy), redis: stores, nats: stores },
      'go-control-plane': list(planes === true ? ['0.13.4'] : []),
      kube: list(planes === true ? [kubeVersion] : []),
    }
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest))
    const output = join(folder, 'results.json')
    const args = ['run', '--project', 'engine', '--no-isolate', '--no-cache', '--no-color']
    // Of the tests themselves only those are run that stand for a missing engine.
    const only = ['-t', 'is installed$', '--reporter=json', `--outputFile=${output}`]
    const child = spawn(
      process.execPath,
      [`${root}node_modules/vitest/vitest.mjs`, ...args, ...only],
      {
        cwd: root,
        env: { PATH: process.env['PATH'], HOME: folder, CI: ci, DRAINABLE_ENGINES: folder },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
    const [status] = (await once(child, 'close')) as [number | null]
    const { testResults } = JSON.parse(await readFile(output, 'utf8')) as {
      testResults: Collected['files']
    }
    return { status, stderr, files: testResults }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The tests that stand for a missing engine, with what became of them. */
function standIns({ files }: Collected): readonly string[] {
  const all = files.flatMap(({ assertionResults }) => assertionResults)
  const found = all.filter(({ title }) => title.endsWith(' is installed'))
  return [...new Set(found.map(({ title, status }) => `${title.split(' ')[0]}: ${status}`))].sort()
}

// Each loads every file anew, which takes ten seconds. Outside of CI the engine tests of the same run show what a clone has.
describe.runIf(isCi())('files of engine tests', { concurrent: true, timeout: 120_000 }, () => {
  test.for(SUBSETS)('load with $what, and name what is missing', async ({ missing, ...subset }) => {
    const found = await collect(subset)
    const written = await readdir(`${root}test/engine`, { recursive: true })
    expect(found.files.length).toBe(written.filter((name) => name.endsWith('.test.ts')).length)
    expect(found.files.map(({ message }) => message).filter((message) => message !== '')).toEqual(
      [],
    )
    expect(found.files.filter((file) => file.assertionResults.length === 0)).toEqual([])
    expect(standIns(found)).toEqual(missing.map((name) => `${name}: skipped`).sort())
    const said = found.stderr.split('\n').filter((line) => line.startsWith('SKIPPED: '))
    for (const name of missing) expect(said.join('\n')).toContain(`no ${name}`)
    if (missing.length === 0) expect(said).toEqual([])
    expect(found.status).toBe(0)
  })

  test('fail under CI where an engine is missing, beside another series', async () => {
    const haproxy = ['2.6.12', '2.8.16', '3.4.1']
    const found = await collect({ haproxy, envoy: ['1.39.3'] }, 'true')
    expect(standIns(found)).toEqual(
      ['envoy-1.40', 'go-control-plane', 'haproxy-3.0', 'kube'].map((name) => `${name}: failed`),
    )
    const messages = found.files.map(({ message }) => message)
    expect(messages.filter((message) => message !== '')).toEqual([])
    expect(found.status).toBe(1)
  })
})
