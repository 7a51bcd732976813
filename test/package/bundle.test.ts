import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { entries, output, root, specifier } from '../../scripts/package/entries.ts'
import { bundledSize, readmeScript, SMALLEST } from '../../bench/package/support/bundled.js'
import { loadedByBuilt } from './built-graph.js'

const named = entries.map((item) => [specifier(item), item] as const)
const esmOnly = ['p-retry', 'is-network-error']
/** The others read files, or are for tests. */
const loadsLittle = [
  '',
  'haproxy-runtime',
  'haproxy-dataplane',
  'f5-bigip',
  'citrix-adc',
  'endpoints',
  'provider',
]
const bundled = [
  'zod',
  '@bufbuild/protobuf',
  '@grpc/grpc-js-xds',
  'commander',
  'log-update',
  'cli-truncate',
]

describe.each(named)('%s as built', (_, item) => {
  const esm = loadedByBuilt(`${output(item)}.js`)
  const cjs = loadedByBuilt(`${output(item)}.cjs`)

  it('loads exactly the packages that the list of entries says', () => {
    expect(esm.packages).toEqual([...item.externals].sort())
    expect(cjs.packages).toEqual(item.externals.filter((name) => !esmOnly.includes(name)).sort())
  })

  it('loads what only a call over HTTP needs at the first such call', () => {
    for (const { atOnce } of [esm, cjs]) expect(atOnce).not.toContain('undici')
  })

  // Every ESM import of it reads all its names, and one of them loads Node's own undici: 20 ms.
  it.skipIf(item.name.startsWith('testing/'))('imports no HTTP server of Node', () => {
    for (const { builtin } of [esm, cjs]) {
      expect([...builtin].filter((name) => /^http/.test(name))).toEqual([])
    }
  })

  // The same: each of them loads with all of its names what no program needs before its first drain.
  it.skipIf(!loadsLittle.includes(item.name))(
    'loads what is large of Node when it is first used',
    () => {
      for (const name of ['crypto', 'fs', 'fs/promises', 'net', 'tls', 'util'])
        expect([...esm.builtin]).not.toContain(name)
    },
  )

  it(`is within its budget of ${item.kilobytes} kB`, () => {
    expect(esm.bytes / 1000).toBeLessThan(item.kilobytes)
    // The same code with what CommonJS needs around it, and the packages that are ESM only.
    expect(cjs.bytes / 1000).toBeLessThan(item.kilobytes * 1.25)
  })

  it('has declarations for both kinds of module', () => {
    for (const ending of ['d.ts', 'd.cts']) {
      expect(existsSync(join(root, 'dist', `${output(item)}.${ending}`))).toBe(true)
    }
  })
})

describe('a program that is bundled', () => {
  it('of two small helpers has at most 5 kB of the package', async () => {
    expect(await bundledSize(SMALLEST)).toBeLessThan(5_000)
  })

  it("of the README's first script has at most 300 kB", async () => {
    expect(await bundledSize(readmeScript())).toBeLessThan(300_000)
  })
})

describe('the command as built', () => {
  const text = readFileSync(join(root, 'dist/cli.js'), 'utf8')

  it('imports nothing of a package or of Node before it knows the Node', () => {
    expect(text).toMatch(/^#!\/usr\/bin\/env node\n/)
    expect([...text.matchAll(/^import .*?["']([^"']+)["']/gm)].map(([, name]) => name)).toEqual(
      expect.not.arrayContaining([expect.not.stringMatching(/^\.\/chunk-/)]),
    )
  })

  it.each([['--help'], ['status', 'haproxy:/nowhere/admin.sock']])(
    'loads no HTTP client and no gRPC for %s',
    (...args) => {
      const tell = `data:text/javascript,import{registerHooks}from"node:module";registerHooks({resolve(s,c,n){const r=n(s,c);process._rawDebug("load "+r.url);return r}})`
      const { stderr } = spawnSync(
        process.execPath,
        ['--import', tell, join(root, 'dist/cli.js'), ...args],
        { encoding: 'utf8' },
      )
      const loaded = stderr.split('\n').filter((line) => line.startsWith('load '))
      expect(loaded.length).toBeGreaterThan(3)
      expect(loaded.filter((line) => /undici|grpc|yaml|node:http/.test(line))).toEqual([])
    },
  )
})

describe('the built package', () => {
  const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' })

  const comment = /\/\*[\s\S]*?\*\//g

  it('has nothing of zod but its small form', () => {
    const code = files
      .filter((file) => /\.c?js$/.test(file))
      .map((file) => readFileSync(join(root, 'dist', file), 'utf8'))
    expect(code.filter((text) => text.includes('"ZodMiniString"')).length).toBeGreaterThan(0)
    expect(code.filter((text) => text.includes('"ZodString"'))).toEqual([])
  })

  it('declares types from no package that users would have to install', () => {
    const allowed = ['undici', '@grpc/grpc-js']
    const seen = files
      .filter((file) => /\.d\.c?ts$/.test(file))
      .flatMap((file) => {
        const text = readFileSync(join(root, 'dist', file), 'utf8').replace(comment, '')
        return [...text.matchAll(/(?:from|import\() ?'([^'.][^']*)'/g)].map((m) => m[1] ?? '')
      })
      .filter((name) => !name.startsWith('node:') && !allowed.includes(name))
    expect([...new Set(seen)]).toEqual([])
  })

  it('names the same packages in its SBOM and in its notices', () => {
    const notices = readFileSync(join(root, 'THIRD-PARTY-NOTICES.md'), 'utf8')
    const { components } = JSON.parse(readFileSync(join(root, 'sbom.cdx.json'), 'utf8')) as {
      components: readonly { group?: string; name: string; version?: string }[]
    }
    const named = components
      .filter(({ version }) => version !== undefined)
      .map(({ group, name, version }) => `${group ? `${group}/` : ''}${name} ${version ?? ''}`)
    const titles = [...notices.matchAll(/^## (\S+ \S+) \(/gm)].map(([, title]) => title)
    expect(named.sort()).toEqual(titles.sort())
    expect(named).toContainEqual(expect.stringMatching(/^zod 4\./))
  })

  it('keeps the licence of everything that it bundles', () => {
    const notices = readFileSync(join(root, 'THIRD-PARTY-NOTICES.md'), 'utf8')
    for (const name of [...esmOnly, ...bundled]) {
      expect(notices).toContain(`## ${name} `)
    }
    expect(notices).toContain('Permission is hereby granted')
    expect(notices).toContain('Apache License')
    expect(notices).toContain('Copyright 2008 Google Inc.')
  })
})
