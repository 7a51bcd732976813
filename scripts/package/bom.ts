/**
 * sbom.cdx.json: what the package contains and what it is installed with, as CycloneDX 1.6. Scanners read it from the
 * tarball. The same sources give the same bytes: it has no time and no serial number.
 *
 * The format: https://cyclonedx.org/docs/1.6/json/. `cdx:npm:package:bundled` is of CycloneDX's list of property names.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { bundledOf, manifestOf, type Bundled } from './bundled.ts'
import { root } from './entries.ts'

export const bomPath = 'sbom.cdx.json'

export interface Component {
  readonly type: 'library'
  readonly 'bom-ref': string
  readonly group?: string
  readonly name: string
  /** Of what is bundled. What is installed beside it has the version that the user's package manager chooses. */
  readonly version?: string
  readonly description?: string
  readonly scope: 'required' | 'optional'
  readonly licenses: readonly { readonly expression: string }[]
  readonly purl: string
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly externalReferences?: readonly { readonly type: string; readonly url: string }[]
  readonly properties: readonly { readonly name: string; readonly value: string }[]
}

/** The part of the list that is read here. */
export interface Bom {
  readonly metadata: object
  readonly components: readonly Component[]
  readonly dependencies: readonly object[]
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly homepage: string
  readonly repository: { readonly url: string }
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string } | undefined>>
}

const json = (path: string): unknown => JSON.parse(readFileSync(`${root}${path}`, 'utf8'))

/** Writes the list of what the build has bundled, and of what it imports. */
export function writeBom(inputs: readonly string[]): void {
  writeFileSync(`${root}${bomPath}`, `${JSON.stringify(bomOf(inputs), null, 2)}\n`)
}

/** The list for some files of a build. */
export function bomOf(inputs: readonly string[]): Bom {
  const own = json('package.json') as Manifest
  const lock = json('package-lock.json') as Lock
  const bundled = bundledOf(inputs).map((each) => ofBundled(each, lock))
  const beside = [
    ...Object.entries(own.dependencies).map(([name, range]) =>
      ofInstalled(name, range, 'required'),
    ),
    ...Object.entries(own.peerDependencies).map(([name, range]) =>
      ofInstalled(name, range, 'optional'),
    ),
  ]
  const components = [...bundled, ...beside]
  const self = purlOf(own.name, own.version)
  return {
    ...{ $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json' },
    ...{ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 },
    metadata: {
      component: {
        type: 'library',
        'bom-ref': self,
        name: own.name,
        version: own.version,
        description: own.description,
        licenses: [{ expression: own.license }],
        purl: self,
        externalReferences: [
          { type: 'website', url: own.homepage },
          { type: 'vcs', url: own.repository.url },
        ],
      },
    },
    components,
    dependencies: [
      { ref: self, dependsOn: components.map((each) => each['bom-ref']) },
      ...components.map((each) => ({ ref: each['bom-ref'] })),
    ],
  }
}

function ofBundled({ name, version, license, folders }: Bundled, lock: Lock): Component {
  const { integrity } = lock.packages[folders[0]] ?? {}
  const [, alg = '', base64 = ''] = /^(sha512)-(.+)$/.exec(integrity ?? '') ?? []
  const generated = name === '@grpc/grpc-js-xds'
  return {
    ...named(name, version),
    ...(generated && {
      description:
        'Only code generated from the protocol definitions in this package: Envoy, xDS, protoc-gen-validate, googleapis',
    }),
    scope: 'required',
    licenses: [{ expression: license }],
    purl: purlOf(name, version),
    ...(alg !== '' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') }],
    }),
    externalReferences: [{ type: 'distribution', url: tarballOf(name, version) }],
    properties: [
      { name: 'cdx:npm:package:bundled', value: 'true' },
      ...folders.map((value) => ({ name: 'cdx:npm:package:path', value })),
    ],
  }
}

/** It is not inside: `npm install` brings it, or the user does. */
function ofInstalled(name: string, range: string, scope: 'required' | 'optional'): Component {
  const { license } = manifestOf(`node_modules/${name}`)
  return {
    ...named(name),
    scope,
    licenses: [{ expression: license }],
    purl: purlOf(name),
    properties: [{ name: 'drainable:range', value: range }],
  }
}

function named(
  full: string,
  version?: string,
): Pick<Component, 'type' | 'bom-ref' | 'group' | 'name' | 'version'> {
  const [, group, name = full] = /^(@[^/]+)\/(.+)$/.exec(full) ?? []
  const ref = purlOf(full, version)
  return {
    type: 'library',
    'bom-ref': version === undefined ? `${ref}#installed` : ref,
    ...(group !== undefined && { group }),
    name,
    ...(version !== undefined && { version }),
  }
}

function purlOf(name: string, version?: string): string {
  return `pkg:npm/${name.replace('@', '%40')}${version === undefined ? '' : `@${version}`}`
}

function tarballOf(name: string, version: string): string {
  return `https://registry.npmjs.org/${name}/-/${name.replace(/^.*\//, '')}-${version}.tgz`
}
