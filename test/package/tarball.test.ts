import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type BuildOptions } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entries, output, root } from '../../scripts/package/entries.ts'
import { SCHEMAS } from '../../scripts/package/written.ts'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { haproxyUrl } from '../support/haproxy-url.js'
import { makeConsumer, nodeNames, run, runtimeNames, runtimeVersions } from './consumer.js'
import type { Consumer } from './consumer.js'

let consumer: Consumer

beforeAll(async () => {
  consumer = await makeConsumer()
})

afterAll(() => {
  consumer[Symbol.dispose]()
})

const readme = readFileSync(join(root, 'README.md'), 'utf8')
const tool = (name: string) => join(root, 'node_modules/.bin', name)
const node = (name: string) => consumer.nodes.get(name) ?? name

it('holds the build, the documents and nothing else', () => {
  const { files } = consumer
  const papers = [
    ...['LICENSE', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'package.json'],
    ...['THIRD-PARTY-NOTICES.md', 'sbom.cdx.json'],
  ]
  expect(files.filter((file) => !file.startsWith('dist/')).sort()).toEqual(papers.sort())
  expect(
    files.filter((file) => !/\.(c?js|d\.c?ts)$/.test(file) && file.startsWith('dist/')).sort(),
  ).toEqual(SCHEMAS.map((name) => `dist/${name}`).sort())
  for (const item of entries) {
    for (const ending of ['js', 'cjs', 'd.ts', 'd.cts']) {
      expect(files).toContain(`dist/${output(item)}.${ending}`)
    }
  }
})

it('is clean to publint', async () => {
  await run(tool('publint'), ['--strict', consumer.tarball], root)
})

it('is clean to attw, under node10 too', async () => {
  await run(tool('attw'), [consumer.tarball, '--profile', 'strict'], root)
})

describe.each(nodeNames)('on Node %s', (name) => {
  it('runs the command', async () => {
    await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
    const command = join(consumer.directory, 'node_modules/.bin/drainable')
    const args = [command, 'status', '--json', haproxyUrl(fake)]
    const said = JSON.parse(await run(node(name), args, consumer.directory)) as object
    expect(said).toMatchObject({ verb: 'status', exitCode: 0, members: [{}, {}] })
  })

  it('runs the Node that it names', async () => {
    expect(await run(node(name), ['-v'], root)).toMatch(new RegExp(`^v${name}\\b`))
  })

  it.each(['esm.mjs', 'cjs.cjs'])('gives every entry to %s', async (file) => {
    const said = JSON.parse(await run(node(name), [file], consumer.directory)) as object
    expect(Object.keys(said)).toHaveLength(entries.length)
    expect(said).toMatchObject({ drainable: expect.arrayContaining(['drain', 'ready']) as unknown })
  })

  it('exports the same names to both', async () => {
    const [esm, cjs] = await Promise.all(
      ['esm.mjs', 'cjs.cjs'].map((file) => run(node(name), [file], consumer.directory)),
    )
    expect(JSON.parse(esm ?? '')).toEqual(JSON.parse(cjs ?? ''))
  })

  it.each(['drain.mjs', 'drain.cjs'])('drains a member in %s', async (file) => {
    expect(await run(node(name), [file], consumer.directory)).toContain('drained and ready')
  })

  it('knows an error of one copy in the other', async () => {
    expect(await run(node(name), ['brand.mjs'], consumer.directory)).toBe('same error\n')
  })

  it('drains in a worker thread, and the thread ends by itself', async () => {
    const said = await run(node(name), ['worker.mjs'], consumer.directory)
    expect(said).toMatch(/^idle web\/web9 was not found/)
  })

  it('runs a plain CommonJS program against a HAProxy', async () => {
    await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, port: 0 })
    if (typeof fake.socket === 'string') throw new Error('expected TCP')
    const program = readFileSync(join(root, 'test/programs/11-plain.cjs'), 'utf8')
    const file = join(consumer.directory, `plain-${name}.cjs`)
    writeFileSync(file, program.replace('9999', String(fake.socket.port)))
    await run(node(name), [file], consumer.directory)
    const changes = fake.requests.flatMap(
      ({ line }) => /state (?:drain|maint|ready)$/.exec(line) ?? [],
    )
    expect(changes).toEqual(['state drain', 'state maint', 'state ready'])
  })

  // Node 22 does not know `await using`, as the README says.
  it.skipIf(name.startsWith('22'))(
    "runs the README's first script as it stands there",
    async () => {
      await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
      const [, script = ''] = /## A first script[^]*?```ts\n([^]*?)```/.exec(readme) ?? []
      const file = join(consumer.directory, `first-${name}.mts`)
      const text = script
        .replace('/run/haproxy/admin.sock', fake.socket as string)
        .replace('/run/haproxy-master.sock', fake.master as string)
      writeFileSync(file, text)
      const said = await run(node(name), [file], consumer.directory)
      expect(said.match(/^web[12] serves nobody now$/gm)).toHaveLength(2)
      expect(said.match(/0 in flight and 0 queued/g)).toHaveLength(2)
      for (const member of ['web1', 'web2']) {
        const changes = fake.requests.flatMap(
          ({ line }) => new RegExp(`web/${member} state (\\w+)$`).exec(line)?.[1] ?? [],
        )
        expect(changes[0]).toBe('drain')
        expect(changes.at(-1)).toBe('ready')
      }
    },
  )

  it('has no side effect when it is loaded', async () => {
    expect(await run(node(name), ['quiet.mjs'], consumer.directory)).toBe('quiet\n')
  })
})

/** Runs a program of the consumer on another runtime. */
function runOn(name: (typeof runtimeNames)[number], file: string): Promise<string> {
  const [program, ...args] = consumer.runtimes.get(name) ?? [name]
  return run(program, [...args, file], consumer.directory)
}

describe.each(runtimeNames)('on %s', (name) => {
  it('is the version that docs/questions.md names', async () => {
    const [program] = consumer.runtimes.get(name) ?? [name]
    const version = runtimeVersions[name]
    expect(await run(program, ['--version'], root)).toContain(`${version}.`)
    const questions = readFileSync(join(root, 'docs/questions.md'), 'utf8')
    expect(questions).toMatch(new RegExp(`\\| ${name} ${version} \\|.*CI runs ${version}`, 'i'))
  })

  it('gives every entry the names that Node has', async () => {
    const here = await run(process.execPath, ['esm.mjs'], consumer.directory)
    expect(JSON.parse(await runOn(name, 'esm.mjs'))).toEqual(JSON.parse(here))
  })

  it.each(['drain.mjs', 'fake-provider.mjs'])('drains a member in %s', async (file) => {
    expect(await runOn(name, file)).toContain('drained and ready')
  })
})

it('drains over HTTP on Deno, with its own certificate authority', async () => {
  expect(await runOn('deno', 'bundled.mjs')).toContain('idle')
})

it('refuses to speak HTTP on Bun, which ignores TLS options', async () => {
  await expect(runOn('bun', 'bundled.mjs')).rejects.toThrow(
    /undici was replaced by a module that ignores TLS options and timeouts, as Bun does/,
  )
})

describe('bundled into one file by esbuild', () => {
  /** As docs/questions.md tells it. */
  const REQUIRE =
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

  async function bundled(name: string, options: BuildOptions): Promise<string> {
    const outfile = join(consumer.directory, 'bundles', name)
    const shared: BuildOptions = { bundle: true, platform: 'node', target: 'node22' }
    await build({
      ...shared,
      entryPoints: [join(consumer.directory, 'bundled.mjs')],
      outfile,
      ...options,
    })
    return run(process.execPath, [outfile], consumer.directory)
  }

  it.each<[string, BuildOptions]>([
    ['plain.cjs', { format: 'cjs' }],
    ['small.cjs', { format: 'cjs', minify: true }],
    ['banner.mjs', { format: 'esm', banner: { js: REQUIRE } }],
    ['outside.mjs', { format: 'esm', external: ['undici'] }],
  ])('%s drains over HTTP', async (name, options) => {
    expect(await bundled(name, options)).toContain('idle')
  })

  it('an ES module without require says what to do', async () => {
    await expect(bundled('bare.mjs', { format: 'esm' })).rejects.toThrow(
      /undici could not be loaded: Dynamic require .*in a bundle of ES modules give it a require/,
    )
  })
})

it('works in a Jest 30 project', async () => {
  const jest = join(consumer.directory, 'node_modules/jest/bin/jest.js')
  await run(process.execPath, [jest, '--ci'], consumer.directory)
})

it.each([
  ['typescript', 'nodenext', 'nodenext'],
  ['typescript', 'esnext', 'bundler'],
  ['typescript-5.4', 'node16', 'node16'],
  ['typescript-5.4', 'commonjs', 'node10'],
])(
  'has types for %s under module %s and moduleResolution %s',
  async (compiler, module, resolution) => {
    const tsc = join(consumer.directory, 'node_modules', compiler, 'bin/tsc')
    const how = ['--module', module, '--moduleResolution', resolution, '--noUncheckedIndexedAccess']
    await run(process.execPath, [tsc, '-p', '.', ...how], consumer.directory)
  },
)
