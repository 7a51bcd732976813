/** The command as one executable file: the bundle of it inside a Node, for hosts that have none. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { enginesDirectory } from '../engines/manifest.ts'
import { run } from '../engines/run.ts'
import { root } from '../package/entries.ts'
import { noticesOf } from '../package/notices.ts'

/** The newest Node of a series with long-term support that npm has for every platform; from 26 on it can build these files. */
export const nodeVersion = '26.10.0'

export const platforms = ['linux-x64', 'linux-arm64'] as const
export type Platform = (typeof platforms)[number]

/** The platform of this machine, if executables can be built and run on it. */
export function ownPlatform(): Platform | undefined {
  return platforms.find((platform) => platform === `${process.platform}-${process.arch}`)
}

/**
 * Builds the executable of each platform in a folder, with the licences of all that is in it.
 *
 * Any of the platforms builds for all of them.
 *
 * @returns the path of each
 */
export async function buildStandalone(
  wanted: readonly Platform[],
  folder: string,
): Promise<ReadonlyMap<Platform, string>> {
  const own = ownPlatform()
  if (own === undefined) throw new Error(`executables are built on ${platforms.join(' or ')}`)
  const nodes = await fetchNodes([...new Set([own, ...wanted])])
  const work = mkdtempSync(join(tmpdir(), 'drainable-standalone-'))
  try {
    const main = join(work, 'drainable.cjs')
    const inputs = await bundle(main)
    mkdirSync(folder, { recursive: true })
    const built = new Map<Platform, string>()
    for (const platform of wanted) {
      const output = join(folder, `drainable-${platform}`)
      const config = join(work, `${platform}.json`)
      const settings = {
        main,
        executable: programOf(nodes, platform),
        output,
        disableExperimentalSEAWarning: true,
        // Compiled once, here. Another processor can't read it.
        useCodeCache: platform === own,
      }
      writeFileSync(config, JSON.stringify(settings))
      await run(programOf(nodes, own), ['--build-sea', config])
      built.set(platform, output)
    }
    writeFileSync(join(folder, 'THIRD-PARTY-NOTICES.md'), notices(inputs, nodes, own))
    return built
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The command and all it loads in one file. gRPC is left out: no verb uses it. */
async function bundle(outfile: string): Promise<readonly string[]> {
  const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string }
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['scripts/standalone/entry.ts'],
    outfile,
    bundle: true,
    minify: true,
    keepNames: true,
    metafile: true,
    format: 'cjs',
    platform: 'node',
    target: 'node26',
    external: ['@grpc/grpc-js'],
    define: { DRAINABLE_VERSION: JSON.stringify(version) },
    logLevel: 'error',
  })
  return Object.keys(metafile.inputs)
}

/** Node of each platform from its package of npm, kept in the folder of engines. */
async function fetchNodes(wanted: readonly Platform[]): Promise<string> {
  const folder = join(enginesDirectory, `standalone-${nodeVersion}`)
  if (wanted.every((platform) => existsSync(programOf(folder, platform)))) return folder
  for (const platform of wanted) {
    const place = join(folder, platform)
    mkdirSync(place, { recursive: true })
    const said = await run('npm', ['pack', '--silent', `node-${platform}@${nodeVersion}`], {
      cwd: place,
    })
    const archive = said.trim().split('\n').at(-1) ?? ''
    const wantedFiles = ['package/bin/node', 'package/LICENSE']
    await run('tar', ['-xzf', archive, ...wantedFiles], { cwd: place })
    rmSync(join(place, archive))
  }
  return folder
}

function programOf(folder: string, platform: Platform): string {
  return join(folder, platform, 'package/bin/node')
}

function notices(inputs: readonly string[], nodes: string, own: Platform): string {
  const node = readFileSync(join(nodes, own, 'package/LICENSE'), 'utf8')
  const heading = `# Third-party notices

The executables contain Node.js ${nodeVersion} and code of these packages.`
  return `${noticesOf(inputs, heading)}\n## Node.js ${nodeVersion}\n\n\`\`\`\n${node.trim()}\n\`\`\`\n`
}
