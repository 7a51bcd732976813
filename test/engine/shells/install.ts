/**
 * Ansible, and of its community collection the one module that people drain HAProxy with, in a Python environment of
 * their own under `.engines/`.
 *
 * `node test/engine/shells/install.ts` installs them; the tests do so by themselves.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { enginesDirectory } from '../../../scripts/engines/manifest.ts'

const run = promisify(execFile)

const CORE = 'ansible-core>=2.16,<2.20'
/** Carries community.general 11.4; of some hundred MB one module is unpacked. */
const ANSIBLE = 'ansible==12.3.0'
const MODULE = 'ansible_collections/community/general/plugins/modules/haproxy.py'

/** Where the programs are. */
export interface Ansible {
  readonly playbook: string
  readonly python: string
  /** Folder with `ansible_collections`, of which one module is there. */
  readonly collections: string
}

const HOME = join(enginesDirectory, 'py-ansible')
const UNPACK = `
import sys, zipfile
zipfile.ZipFile(sys.argv[1]).extract(sys.argv[3], sys.argv[2])
`

/** Installs what is missing. */
export async function installAnsible(): Promise<Ansible> {
  const bin = join(HOME, 'venv', 'bin')
  const python = join(bin, 'python')
  const playbook = join(bin, 'ansible-playbook')
  const ansible = { playbook, python, collections: join(HOME, 'collections') }
  const wanted = [CORE, ANSIBLE, MODULE].join('\n')
  const stamp = join(HOME, 'installed')
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === wanted) return ansible
  await rm(HOME, { recursive: true, force: true })
  await mkdir(HOME, { recursive: true })
  const options = { timeout: 300_000, maxBuffer: 16 * 1024 * 1024 }
  await run('python3', ['-m', 'venv', join(HOME, 'venv')], options)
  await run(python, ['-m', 'pip', 'install', '--quiet', CORE], options)
  const wheels = join(HOME, 'wheels')
  const download = ['download', '--quiet', '--no-deps', '--only-binary=:all:', '-d', wheels]
  await run(python, ['-m', 'pip', ...download, ANSIBLE], options)
  const wheel = join(wheels, `${ANSIBLE.replace('==', '-')}-py3-none-any.whl`)
  await run(python, ['-c', UNPACK, wheel, ansible.collections, MODULE], options)
  await rm(wheels, { recursive: true, force: true })
  await writeFile(stamp, wanted)
  return ansible
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { playbook } = await installAnsible()
  const { stdout } = await run(playbook, ['--version'])
  process.stdout.write(`${stdout.split('\n', 1)[0] ?? ''}\n`)
}
