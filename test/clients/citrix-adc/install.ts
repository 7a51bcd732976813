/**
 * NITRO clients that others wrote, in a Python environment of their own under `.engines/`: the judges
 * of the stand-in, since no appliance can be had.
 *
 * `node test/clients/citrix-adc/install.ts` installs them; the tests do so by themselves.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { enginesDirectory } from '../../../scripts/engines/manifest.ts'

const run = promisify(execFile)

/** Nothing else is installed by name; the rest is what these need. */
const PACKAGES = [
  'check-netscaler==2.7.0',
  'nitroapi==0.1.0',
  'ansible-core==2.17.14',
  'setuptools<81',
]
/** The last release of Ansible with the NetScaler modules of the community in it: only those are unpacked. */
const ANSIBLE = 'ansible==10.7.0'
const COLLECTION = 'ansible_collections/community/network/'

/** Where the clients are. */
export interface Clients {
  readonly python: string
  readonly checkNetscaler: string
  readonly ansible: string
  /** Folder with `ansible_collections`. */
  readonly collections: string
}

const HOME = join(enginesDirectory, 'py-citrix')
const UNPACK = `
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith('${COLLECTION}')])
`

/** Installs what is missing. */
export async function installClients(): Promise<Clients> {
  const bin = join(HOME, 'venv', 'bin')
  const clients: Clients = {
    python: join(bin, 'python'),
    checkNetscaler: join(bin, 'check_netscaler'),
    ansible: join(bin, 'ansible'),
    collections: join(HOME, 'collections'),
  }
  const wanted = [...PACKAGES, ANSIBLE].join('\n')
  const stamp = join(HOME, 'installed')
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === wanted) return clients
  await rm(HOME, { recursive: true, force: true })
  await mkdir(HOME, { recursive: true })
  const options = { timeout: 240_000, maxBuffer: 16 * 1024 * 1024 }
  await run('python3', ['-m', 'venv', join(HOME, 'venv')], options)
  await run(
    clients.python,
    ['-m', 'pip', 'install', '--quiet', '--retries', '2', ...PACKAGES],
    options,
  )
  const wheels = join(HOME, 'wheels')
  await run(
    clients.python,
    ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '-d', wheels, ANSIBLE],
    options,
  )
  const wheel = join(wheels, `${ANSIBLE.replace('==', '-')}-py3-none-any.whl`)
  await run(clients.python, ['-c', UNPACK, wheel, clients.collections], options)
  await rm(wheels, { recursive: true, force: true })
  await writeFile(stamp, wanted)
  return clients
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { python } = await installClients()
  const { stdout } = await run(python, ['-m', 'pip', 'list', '--format=freeze'])
  const names = /^(check.netscaler|nitroapi|ansible.core)==.*/gim
  process.stdout.write(`${(stdout.match(names) ?? []).join('\n')}\n`)
}
