/** THIRD-PARTY-NOTICES.md: the licence of all that is bundled into the build. */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { bundledOf, type Bundled } from './bundled.ts'
import { root } from './entries.ts'

/** Writes the notices of what the build has bundled. */
export function writeNotices(inputs: readonly string[]): void {
  writeFileSync(`${root}THIRD-PARTY-NOTICES.md`, noticesOf(inputs, heading))
}

/** The notices of all packages that some files belong to. */
export function noticesOf(inputs: readonly string[], title: string): string {
  return `${[title, ...bundledOf(inputs).map(section)].join('\n\n')}\n`
}

const heading = `# Third-party notices

The files in \`dist\` contain code of these packages. The rest of what the package uses is installed beside it.`

function section({ name, version, license, folders: [folder] }: Bundled): string {
  const title = `## ${name} ${version} (${license})`
  const all = texts(name, `${root}${folder}/`)
  return [title, ...all.map((text) => `\`\`\`\n${text.trim()}\n\`\`\``)].join('\n\n')
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
