/** A user's project in a temporary folder: the packed tarball installed from a file, on every Node that we promise. */
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { enginesDirectory } from '../../scripts/engines/manifest.ts'
import { present, root, specifier } from '../../scripts/package/entries.ts'
import { importsOf } from '../../scripts/package/imports.ts'

export interface Packed {
  readonly tarball: string
  readonly files: readonly string[]
}

export interface Consumer extends Disposable, Packed {
  readonly directory: string
  /** Program of each Node by the name shown in tests. */
  readonly nodes: ReadonlyMap<string, string>
  /** How to run a file on another runtime, by its name. */
  readonly runtimes: ReadonlyMap<string, readonly [program: string, ...args: string[]]>
}

/** The oldest that the manifest allows, the one that the repository works with, and a newer one. */
export const nodeNames = ['22.19.0', '24', '26'] as const

/** Other runtimes that docs/questions.md speaks of, by name and version. */
export const runtimeVersions = { deno: '2.9', bun: '1.4' } as const
export const runtimeNames = ['deno', 'bun'] as const

const sources = fileURLToPath(new URL('./consumer/', import.meta.url))

export async function makeConsumer(): Promise<Consumer> {
  const directory = mkdtempSync(join(tmpdir(), 'drainable-consumer-'))
  const [packed, nodes, runtimes] = await Promise.all([
    pack(directory),
    installNodes(),
    installRuntimes(),
  ])
  cpSync(sources, directory, { recursive: true })
  writeFileSync(
    join(directory, 'entries.json'),
    JSON.stringify(present.map((item) => specifier(item))),
  )
  for (const kind of ['mts', 'cts']) {
    writeFileSync(join(directory, `every-entry.${kind}`), importsOf(present))
  }
  const own = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    devDependencies: Record<string, string>
    peerDependencies: Record<string, string>
  }
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({
      name: 'consumer',
      private: true,
      dependencies: { drainable: `file:${packed.tarball}`, ...own.peerDependencies },
      devDependencies: {
        '@types/node': own.devDependencies['@types/node'],
        typescript: own.devDependencies['typescript'],
        // The oldest that is promised.
        'typescript-5.4': 'npm:typescript@~5.4.5',
        jest: '^30.0.0',
      },
      jest: { testEnvironment: 'node', testMatch: ['**/*.jest.cjs'] },
    }),
  )
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline'], directory)
  return {
    ...packed,
    directory,
    nodes,
    runtimes,
    [Symbol.dispose]: () => {
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function pack(directory: string): Promise<Packed> {
  if (!existsSync(`${root}dist`)) throw new Error('there is no build to pack: run "npm run build"')
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory]
  const [answer] = Object.values(
    JSON.parse(await run('npm', args, root)) as Record<
      string,
      { filename: string; files: { path: string }[] }
    >,
  )
  if (answer === undefined) throw new Error('npm pack named no file')
  return { tarball: join(directory, answer.filename), files: answer.files.map((f) => f.path) }
}

/** Other versions of Node, from their packages, kept in the folder of engines. */
async function installNodes(): Promise<ReadonlyMap<string, string>> {
  const directory = join(enginesDirectory, 'node')
  const wanted = nodeNames.filter((name) => name !== '24')
  const binary = (name: string) => join(directory, 'node_modules', `node-${name}`, 'bin/node')
  const platform = `node-${process.platform}-${process.arch}`
  await install(
    directory,
    wanted.map((name) => `node-${name}@npm:${platform}@${name}`),
    wanted.map(binary),
  )
  return new Map([['24', process.execPath], ...wanted.map((name) => [name, binary(name)] as const)])
}

async function installRuntimes(): Promise<Consumer['runtimes']> {
  const directory = join(enginesDirectory, 'runtimes')
  const { platform, arch } = process
  const deno = join(directory, 'node_modules', 'deno', 'deno')
  const bun = join(directory, 'node_modules', 'bun', 'bin/bun')
  const libc = platform === 'linux' ? '-glibc' : ''
  await install(
    directory,
    [
      `deno@npm:@deno/${platform}-${arch}${libc}@${runtimeVersions.deno}`,
      `bun@npm:@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}@${runtimeVersions.bun}`,
    ],
    [deno, bun],
  )
  return new Map([
    ['deno', [deno, 'run', '--allow-all', '--no-lock', '--quiet']],
    ['bun', [bun, 'run']],
  ])
}

/** Installs packages of programs, unless all of them are there. */
async function install(
  directory: string,
  packages: readonly string[],
  programs: readonly string[],
): Promise<void> {
  if (programs.every((program) => existsSync(program))) return
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), '{"private":true}')
  await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', ...packages], directory)
}

/** Runs a program to its end; what it said is in the error when it failed. */
export function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, NODE_OPTIONS: '', FORCE_COLOR: '0' }
    // A vitest worker sets these for itself; a program of a user would not have them.
    for (const name of Object.keys(env).filter((key) => /^(VITEST|TEST$|NODE_ENV$)/.test(key))) {
      Reflect.deleteProperty(env, name)
    }
    const options = { cwd, env, timeout: 240_000, maxBuffer: 64 << 20 }
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} ${args.join(' ')}\n${stdout}\n${stderr}`, { cause: error }))
    })
  })
}
