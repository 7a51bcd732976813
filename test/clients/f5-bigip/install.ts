/**
 * Clients of F5's own and of its users, in a Python environment of their own under `.engines/`: the
 * judges of the stand-in, since no device can be had.
 *
 * `node test/clients/f5-bigip/install.ts` installs them; the tests do so by themselves.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { enginesDirectory } from '../../../scripts/engines/manifest.ts'

const run = promisify(execFile)

/** f5-sdk asks for distutils, which from Python 3.12 on only setuptools has. */
const PACKAGES = ['bigrest==1.7.3', 'f5-sdk==3.0.21', 'setuptools<81', 'ansible-core>=2.16,<2.20']
/** Carries F5's own modules; of some hundred MB only these are unpacked. */
const ANSIBLE = 'ansible==12.3.0'
const COLLECTIONS = ['f5networks/f5_modules', 'ansible/netcommon', 'ansible/utils']

/** Where the clients are. */
export interface Clients {
  readonly python: string
  readonly playbook: string
  /** Folder with `ansible_collections`. */
  readonly collections: string
}

const HOME = join(enginesDirectory, 'py-f5')
const UNPACK = `
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
wanted = tuple("ansible_collections/" + name + "/" for name in sys.argv[3:])
wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(wanted)])
`

/** Installs what is missing. */
export async function installClients(): Promise<Clients> {
  const bin = join(HOME, 'venv', 'bin')
  const clients: Clients = {
    python: join(bin, 'python'),
    playbook: join(bin, 'ansible-playbook'),
    collections: join(HOME, 'collections'),
  }
  const wanted = [...PACKAGES, ANSIBLE, ...COLLECTIONS].join('\n')
  const stamp = join(HOME, 'installed')
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === wanted) return clients
  await rm(HOME, { recursive: true, force: true })
  await mkdir(HOME, { recursive: true })
  const options = { timeout: 300_000, maxBuffer: 16 * 1024 * 1024 }
  await run('python3', ['-m', 'venv', join(HOME, 'venv')], options)
  await run(clients.python, ['-m', 'pip', 'install', '--quiet', ...PACKAGES], options)
  const wheels = join(HOME, 'wheels')
  await run(
    clients.python,
    ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '-d', wheels, ANSIBLE],
    options,
  )
  const wheel = join(wheels, `${ANSIBLE.replace('==', '-')}-py3-none-any.whl`)
  await run(clients.python, ['-c', UNPACK, wheel, clients.collections, ...COLLECTIONS], options)
  await rm(wheels, { recursive: true, force: true })
  await writeFile(stamp, wanted)
  return clients
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { python } = await installClients()
  const { stdout } = await run(python, ['-m', 'pip', 'list', '--format=freeze'])
  const names = /^(bigrest|f5.sdk|f5.icontrol.rest|ansible.core)==.*/gim
  process.stdout.write(`${(stdout.match(names) ?? []).join('\n')}\n`)
}
