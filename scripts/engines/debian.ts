/**
 * Debian packages of another release, unpacked into a folder, with no root and nothing installed.
 *
 * apt runs under a configuration of its own: lists, cache and package status live in our folder, and the sources are
 * the machine's own (mirror, proxy and keys as they were set up) with only the name of the suite changed.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasProgram, run } from './run.ts'

/** Suites of Debian itself; a source with another name is not Debian's and is left out. */
const debianSuites = new Set([
  ...['bullseye', 'bookworm', 'trixie', 'forky', 'sid'],
  ...['oldoldstable', 'oldstable', 'stable', 'testing', 'unstable'],
])

const rolling = new Set(['sid', 'experimental'])

interface Source {
  readonly uris: readonly string[]
  /** `-updates`, `-security` or nothing. */
  readonly suffix: string
  readonly options: readonly string[]
}

/** Why packages can't be had this way, or `undefined` when they can. */
export async function whyNotDebian(): Promise<string | undefined> {
  for (const program of ['apt-get', 'dpkg-deb']) {
    if (!(await hasProgram(program))) return `this machine has no ${program}`
  }
  return machineSources().length === 0 ? 'its apt sources name no release of Debian' : undefined
}

/**
 * Unpacks a package and every library that it depends on into `directory`.
 *
 * @param more - names of other packages that it can't do without
 */
export async function unpack(
  suite: string,
  name: string,
  directory: string,
  more = /^$/,
): Promise<void> {
  const work = join(directory, '.apt')
  rmSync(work, { recursive: true, force: true })
  const apt = configure(suite, work)
  await run('apt-get', [...apt, 'update'])
  const plan = await run('apt-get', [...apt, '-s', '--no-install-recommends', 'install', name])
  const closure = [...plan.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? '')
  // Of what it depends on, only libraries are needed to run it: not adduser, init scripts or perl.
  const wanted = closure.filter(
    (item) => item === name || /^lib|^gcc-\d+-base$/.test(item) || more.test(item),
  )
  const debs = join(work, 'debs')
  mkdirSync(debs)
  await run('apt-get', [...apt, 'download', ...wanted], { cwd: debs })
  for (const deb of readdirSync(debs)) await run('dpkg-deb', ['-x', join(debs, deb), directory])
  rmSync(work, { recursive: true, force: true })
}

/** Makes an unpacked program run with the loader and the libraries that it was unpacked with. */
export async function relocate(program: string, root: string, patchelf: string): Promise<void> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  const loader = files.find((file) => /(^|\/)ld-linux[^/]*\.so\.\d+$/.test(file))
  if (loader === undefined) throw new Error(`no dynamic loader among the packages in ${root}`)
  const folders = new Set(
    files
      .filter((file) => /\.so(\.[\d.]+)?$/.test(file))
      .map((file) => join(root, file, '..'))
      .filter((folder) => /\/lib\/[^/]+-linux-[^/]+$|\/lib(64)?$/.test(folder)),
  )
  await run(patchelf, ['--set-interpreter', join(root, loader), program])
  await run(patchelf, ['--force-rpath', '--set-rpath', [...folders].join(':'), program])
}

/** The machine's own patchelf, or one from its own release's package. */
export async function patchelf(directory: string): Promise<string> {
  if (await hasProgram('patchelf')) return 'patchelf'
  const own = join(directory, 'usr/bin/patchelf')
  if (!existsSync(own)) {
    mkdirSync(directory, { recursive: true })
    const codename = /^VERSION_CODENAME=(\S+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
    await unpack(codename ?? 'stable', 'patchelf', directory)
  }
  try {
    await run(own, ['--version'])
    return own
  } catch {
    // Its own libraries instead of the machine's: started through the loader that came with it.
    const wrapper = join(directory, 'patchelf')
    const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    const loader = files.find((file) => /(^|\/)ld-linux[^/]*\.so\.\d+$/.test(file)) ?? ''
    const folders = files.filter((file) => /(^|\/)lib\/[^/]+-linux-[^/]+$/.test(file))
    const path = folders.map((folder) => join(directory, folder)).join(':')
    const line = `exec '${join(directory, loader)}' --library-path '${path}' '${own}' "$@"`
    writeFileSync(wrapper, `#!/bin/sh\n${line}\n`, { mode: 0o755 })
    return wrapper
  }
}

/** Writes the private configuration and gives the arguments that select it. */
function configure(suite: string, work: string): string[] {
  for (const folder of ['lists/partial', 'archives/partial', 'empty']) {
    mkdirSync(join(work, folder), { recursive: true })
  }
  writeFileSync(join(work, 'status'), '')
  const lines = new Set<string>()
  for (const { uris, suffix, options } of machineSources()) {
    // sid has neither updates nor security suites: everything goes to sid itself.
    if (suffix !== '' && rolling.has(suite)) continue
    const bracket = options.length > 0 ? `[${options.join(' ')}] ` : ''
    for (const uri of uris) {
      lines.add(`deb ${bracket}${uri} ${suite}${suffix} main`)
      if (suite === 'experimental') lines.add(`deb ${bracket}${uri} sid main`)
    }
  }
  writeFileSync(join(work, 'sources.list'), `${[...lines].join('\n')}\n`)
  const settings: Record<string, string> = {
    'Dir::State': work,
    'Dir::State::lists': join(work, 'lists'),
    'Dir::State::status': join(work, 'status'),
    'Dir::Cache': work,
    'Dir::Cache::archives': join(work, 'archives'),
    'Dir::Etc::sourcelist': join(work, 'sources.list'),
    'Dir::Etc::sourceparts': join(work, 'empty'),
    'Dir::Etc::preferences': join(work, 'none'),
    'Dir::Etc::preferencesparts': join(work, 'empty'),
    // Else apt takes nothing from experimental, which holds only what differs from sid.
    ...(suite === 'experimental' && { 'APT::Default-Release': suite }),
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled': 'false',
    'APT::Sandbox::User': '',
    'APT::Get::List-Cleanup': 'false',
  }
  const config = join(work, 'apt.conf')
  const cleared = ['APT::Update::Post-Invoke', 'APT::Update::Post-Invoke-Success']
  writeFileSync(
    config,
    [
      ...cleared.map((key) => `#clear ${key};`),
      ...Object.entries(settings).map(([key, value]) => `${key} "${value}";`),
    ].join('\n'),
  )
  return ['-q', '-c', config]
}

/** Debian's own sources among the machine's, in either format of file. */
function machineSources(): Source[] {
  const parts = '/etc/apt/sources.list.d'
  const files = ['/etc/apt/sources.list']
  if (existsSync(parts)) files.push(...readdirSync(parts).map((name) => join(parts, name)))
  const found: Source[] = []
  for (const file of files.filter((name) => existsSync(name))) {
    const text = readFileSync(file, 'utf8')
    if (file.endsWith('.sources')) found.push(...text.split(/\n\s*\n/).flatMap(stanzaSources))
    else if (file.endsWith('.list')) found.push(...text.split('\n').flatMap(lineSources))
  }
  return found
}

function stanzaSources(stanza: string): Source[] {
  const fields = new Map<string, string>()
  let field = ''
  for (const line of stanza.split('\n')) {
    if (line.startsWith('#')) continue
    const named = /^([A-Za-z-]+):(.*)$/.exec(line)
    if (named) field = (named[1] ?? '').toLowerCase()
    fields.set(field, `${fields.get(field) ?? ''}\n${named?.[2] ?? line}`)
  }
  const words = (name: string) =>
    (fields.get(name) ?? '').split(/\s+/).filter((word) => word !== '')
  if (!words('types').includes('deb') || words('enabled').includes('no')) return []
  const options: string[] = []
  const keys = (fields.get('signed-by') ?? '').trim()
  // A key written into the stanza itself has no place in a one-line source; apt's own key folder is used then.
  if (keys.startsWith('/')) options.push(`signed-by=${keys.split(/\s+/).join(',')}`)
  if (words('trusted').includes('yes')) options.push('trusted=yes')
  return words('suites').flatMap((suite) => toSource(suite, words('uris'), options))
}

function lineSources(line: string): Source[] {
  const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s/.exec(`${line} `)
  if (match === null) return []
  const options = (match[1] ?? '').split(/\s+/).filter((word) => /^(signed-by|trusted)=/.test(word))
  return toSource(match[3] ?? '', [match[2] ?? ''], options)
}

function toSource(suite: string, uris: readonly string[], options: readonly string[]): Source[] {
  const match = /^([a-z]+)(-updates|-security)?$/.exec(suite)
  if (match === null || !debianSuites.has(match[1] ?? '')) return []
  return [{ uris, suffix: match[2] ?? '', options }]
}
