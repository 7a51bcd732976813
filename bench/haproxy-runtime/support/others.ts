/** What people drain with today: Ansible's module, and a loop in the shell. Each says when it has seen the server idle. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { patchelf, relocate, unpack } from '../../../scripts/engines/debian.js'
import { enginesDirectory } from '../../../scripts/engines/manifest.js'
import { hasProgram } from '../../../scripts/engines/run.js'
import { now } from './child.js'

const run = promisify(execFile)

const HOME = join(enginesDirectory, 'py-haproxy')
const CORE = 'ansible-core==2.19.14'
/** The package that has the collection in it: only that is unpacked. */
const ANSIBLE = 'ansible==12.3.0'
const COLLECTION = 'ansible_collections/community/general/'
const UNPACK = `
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith('${COLLECTION}')])
`

/** Installs Ansible into an environment of its own, once; gives the Python that has it, which a moved folder still has. */
export async function installAnsible(): Promise<string> {
  const bin = join(HOME, 'venv', 'bin')
  const stamp = join(HOME, 'installed')
  const wanted = `${CORE}\n${ANSIBLE}`
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === wanted) return join(bin, 'python')
  await rm(HOME, { recursive: true, force: true })
  await mkdir(HOME, { recursive: true })
  const pip = [join(bin, 'python'), '-m', 'pip'] as const
  await run('python3', ['-m', 'venv', join(HOME, 'venv')])
  await run(pip[0], [...pip.slice(1), 'install', '--quiet', CORE])
  const wheels = join(HOME, 'wheels')
  await run(pip[0], [...pip.slice(1), 'download', '--quiet', '--no-deps', '-d', wheels, ANSIBLE])
  const wheel = join(wheels, readdirSync(wheels)[0] ?? '')
  await run(pip[0], ['-c', UNPACK, wheel, join(HOME, 'collections')])
  await rm(wheels, { recursive: true, force: true })
  await writeFile(stamp, wanted)
  return join(bin, 'python')
}

/** `socat` of this machine, or of its Debian release, unpacked. */
export async function installSocat(): Promise<string> {
  if (await hasProgram('socat')) return 'socat'
  const home = join(enginesDirectory, 'socat')
  const program = join(home, 'usr/bin/socat')
  // Its loader is named by its whole path: in a folder that was moved it does not start any more.
  if (existsSync(join(home, 'installed')) && (await starts(program))) return program
  await mkdir(home, { recursive: true })
  await unpack('bookworm', 'socat', home)
  await relocate(program, home, await patchelf(join(enginesDirectory, 'patchelf')))
  await writeFile(join(home, 'installed'), 'socat')
  return program
}

async function starts(socat: string): Promise<boolean> {
  return run(socat, ['-V']).then(
    () => true,
    () => false,
  )
}

/** Drains and waits; resolves with the moment in which the program ended. */
export type Drainer = (socket: string, pool: string, server: string) => Promise<number>

/** `community.general.haproxy`, as a playbook calls it. */
export function byAnsible(python: string, interval: number): Drainer {
  return async (socket, backend, host) => {
    const args = {
      state: 'drain',
      drain: true,
      wait: true,
      wait_interval: interval,
      wait_retries: 60,
    }
    const words = Object.entries({ ...args, socket, backend, host }).map(([k, v]) => `${k}=${v}`)
    await run(
      python,
      [
        '-m',
        'ansible.cli.adhoc',
        'localhost',
        '-c',
        'local',
        '-m',
        'community.general.haproxy',
        '-a',
        words.join(' '),
      ],
      { env: { ...process.env, ANSIBLE_COLLECTIONS_PATH: join(HOME, 'collections') } },
    )
    return now()
  }
}

/** The loop of countless runbooks: `show stat` once a second until the server holds nothing. */
export function byShell(socat: string): Drainer {
  return async (socket, pool, server) => {
    const ask = `${socat} - ${socket}`
    const script = `
echo "set server ${pool}/${server} state drain" | ${ask} > /dev/null
while [ "$(echo "show stat" | ${ask} | awk -F, '$1 == "${pool}" && $2 == "${server}" { print $3 + $5 }')" != 0 ]; do sleep 1; done`
    await run('sh', ['-c', script], { timeout: 120_000 })
    return now()
  }
}
