/** What the build bundles of other packages: found in esbuild's lists of inputs, so from what was really bundled. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { root } from './entries.ts'

/** A package whose code stands in ours, at the version that is installed here. */
export interface Bundled {
  readonly name: string
  readonly version: string
  /** An SPDX expression. */
  readonly license: string
  /** Where it is installed, from the root of the repository: one version can be there more than once. */
  readonly folders: readonly [string, ...string[]]
}

interface Metafile {
  readonly inputs: Readonly<Record<string, unknown>>
}

/** Reads the lists that the build leaves for both formats, and removes them: users have no use for them. */
export function takeInputs(): readonly string[] {
  return ['esm', 'cjs'].flatMap((format) => {
    const path = `${root}dist/metafile-${format}.json`
    if (!existsSync(path)) return []
    const metafile = JSON.parse(readFileSync(path, 'utf8')) as Metafile
    rmSync(path)
    return Object.keys(metafile.inputs)
  })
}

/** All packages that some files belong to, by name and version. */
export function bundledOf(inputs: readonly string[]): readonly Bundled[] {
  const folders = new Set<string>()
  for (const input of inputs) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0]
    if (folder !== undefined) folders.add(folder.slice(folder.indexOf('node_modules/')))
    if (input.includes('src/adapters/envoy/grpc/gen/'))
      folders.add('node_modules/@grpc/grpc-js-xds')
  }
  const packages = new Map<string, Bundled>()
  for (const folder of [...folders].sort()) {
    const { name, version, license } = manifestOf(folder)
    const at = `${name} ${version}`
    const others = packages.get(at)?.folders ?? []
    packages.set(at, { name, version, license, folders: [...others, folder] as [string] })
  }
  return [...packages].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each)
}

/** The part of a package's manifest that the notices and the SBOM tell. */
export function manifestOf(folder: string): Pick<Bundled, 'name' | 'version' | 'license'> {
  const text = readFileSync(`${root}${folder}/package.json`, 'utf8')
  const { name, version, license } = JSON.parse(text) as Bundled
  return { name, version, license: license.replace(/^\((.*)\)$/, '$1') }
}
