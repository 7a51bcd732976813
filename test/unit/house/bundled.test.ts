import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { found } from '../../../scripts/package/audit.ts'
import { bomOf } from '../../../scripts/package/bom.ts'
import { bundledOf } from '../../../scripts/package/bundled.ts'
import { root } from '../../../scripts/package/entries.ts'
import { noticesOf } from '../../../scripts/package/notices.ts'

const nested = 'node_modules/log-update/node_modules/wrap-ansi'
const inputs = [
  'src/index.ts',
  'node_modules/zod/v4/mini/parse.js',
  `${nested}/index.js`,
  'src/adapters/envoy/grpc/gen/envoy/type/v3/percent_pb.ts',
]
const version = (folder: string): string =>
  (JSON.parse(readFileSync(`${root}${folder}/package.json`, 'utf8')) as { version: string }).version

describe('what is bundled', () => {
  it('is named at the version that was bundled, not at one installed beside it', () => {
    const [, wrap] = bundledOf(inputs)
    expect(wrap).toMatchObject({ name: 'wrap-ansi', version: version(nested), folders: [nested] })
    expect(wrap?.version).not.toBe(version('node_modules/wrap-ansi'))
    expect(noticesOf(inputs, '')).toContain(`## wrap-ansi ${version(nested)} (MIT)`)
  })

  it('is named once, however often it is installed', () => {
    const both = ['cli-truncate', 'log-update'].map(
      (name) => `node_modules/${name}/node_modules/string-width/index.js`,
    )
    expect(bundledOf(both).map(({ folders }) => folders.length)).toEqual([2])
  })
})

describe('the SBOM', () => {
  const { components } = bomOf(inputs)

  it('names what is bundled by version and hash', () => {
    const zod = components.find(({ name }) => name === 'zod')
    expect(zod).toMatchObject({
      purl: `pkg:npm/zod@${version('node_modules/zod')}`,
      hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) as unknown }],
    })
  })

  it('names what is installed beside it without a version', () => {
    const names = components.filter((each) => each.version === undefined).map(({ purl }) => purl)
    expect(names).toContain('pkg:npm/undici')
    expect(names).toContain('pkg:npm/%40grpc/grpc-js')
  })

  it('has one reference for each component', () => {
    const refs = components.map((each) => each['bom-ref'])
    expect(new Set(refs).size).toBe(refs.length)
  })

  it('is the same for the same sources', () => {
    expect(JSON.stringify(bomOf(inputs))).toBe(JSON.stringify(bomOf([...inputs].reverse())))
  })
})

describe('an advisory', () => {
  const { components } = bomOf(inputs)
  const advisory = { title: 'ReDoS', url: 'https://example.test/1', range: '<99' }
  const told = (
    nodes: readonly string[],
    via: readonly (string | typeof advisory)[] = [advisory],
  ) => found({ 'wrap-ansi': { name: 'wrap-ansi', severity: 'high', via, nodes } }, components)

  it('of what is bundled is told with its version', () => {
    expect(told([nested])).toEqual([
      `wrap-ansi ${version(nested)}, high: ReDoS (<99), https://example.test/1`,
    ])
  })

  it('of another version of it is not told', () => {
    expect(told(['node_modules/wrap-ansi'])).toEqual([])
  })

  it('of what it uses is not its own', () => {
    expect(told([nested], ['string-width'])).toEqual([])
  })
})
