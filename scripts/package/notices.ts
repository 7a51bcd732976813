/** THIRD-PARTY-NOTICES.md: the licence of all that is bundled into the build, found from what was really bundled. */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { root } from './entries.ts'

interface Metafile {
  readonly inputs: Readonly<Record<string, unknown>>
}

/** Reads esbuild's list of inputs for both formats, writes the notices and removes the lists. */
export function writeNotices(): void {
  const inputs = ['esm', 'cjs'].flatMap((format) => {
    const path = `${root}dist/metafile-${format}.json`
    if (!existsSync(path)) return []
    const metafile = JSON.parse(readFileSync(path, 'utf8')) as Metafile
    rmSync(path)
    return Object.keys(metafile.inputs)
  })
  writeFileSync(`${root}THIRD-PARTY-NOTICES.md`, noticesOf(inputs, heading))
}

/** The notices of all packages that some files belong to. */
export function noticesOf(inputs: readonly string[], title: string): string {
  const names = new Set<string>()
  for (const input of inputs) {
    const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]
    if (name !== undefined) names.add(name)
    if (input.includes('src/adapters/envoy/grpc/gen/')) names.add('@grpc/grpc-js-xds')
  }
  return `${[title, ...[...names].sort().map(section)].join('\n\n')}\n`
}

const heading = `# Third-party notices

The files in \`dist\` contain code of these packages. The rest of what the package uses is installed beside it.`

function section(name: string): string {
  const folder = `${root}node_modules/${name}/`
  const manifest = JSON.parse(readFileSync(`${folder}package.json`, 'utf8')) as {
    version: string
    license: string
  }
  const title = `## ${name} ${manifest.version} (${manifest.license})`
  return [title, ...texts(name, folder).map((text) => `\`\`\`\n${text.trim()}\n\`\`\``)].join(
    '\n\n',
  )
}

function texts(name: string, folder: string): string[] {
  if (name === '@bufbuild/protobuf') {
    // It is published without a licence file: its text is the common one, and a notice at the head of one file.
    const varint = readFileSync(`${folder}dist/esm/wire/varint.js`, 'utf8')
    const notice = /^(?:\/\/.*\n)+/.exec(varint)?.[0] ?? ''
    if (!notice.includes('Copyright'))
      throw new Error(`${name} has lost the notice of its varint.js`)
    return [notice.replace(/^\/\/ ?/gm, ''), apache()]
  }
  if (name === '@grpc/grpc-js-xds') {
    // Nothing of the package itself: code generated from the protocol definitions that come inside it.
    const origin = `Code generated from the protocol definitions of Envoy, xDS, protoc-gen-validate and googleapis,
each under the Apache License, version 2.0.`
    return [origin, apache()]
  }
  const file = readdirSync(folder).find((item) => /^licen[cs]e(\.|$)/i.test(item))
  if (file === undefined) throw new Error(`${name} is bundled and has no licence file to keep`)
  return [readFileSync(`${folder}${file}`, 'utf8')]
}

function apache(): string {
  return readFileSync(`${root}node_modules/@grpc/grpc-js/LICENSE`, 'utf8')
}
