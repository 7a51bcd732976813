/** The folder of engines and the list of what is in it. Git ignores the folder; `npm run engines` fills it. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const kinds = ['haproxy', 'envoy', 'kube', 'redis', 'nats', 'go-control-plane'] as const
export type EngineKind = (typeof kinds)[number]

/** A program that was run once and said its version. */
export interface Engine {
  readonly version: string
  /** Major and minor: `3.0`. */
  readonly series: string
  /** Absolute path of the program. */
  readonly path: string
  /** `script` when this script installed it, `environment` when a variable named it. */
  readonly from: 'script' | 'environment'
}

export type Manifest = Readonly<Record<EngineKind, readonly Engine[]>>

/** `DRAINABLE_ENGINES` names another folder. */
const namedDirectory = process.env['DRAINABLE_ENGINES'] ?? ''
export const enginesDirectory =
  namedDirectory === ''
    ? fileURLToPath(new URL('../../.engines/', import.meta.url))
    : resolve(namedDirectory)
export const manifestPath = join(enginesDirectory, 'manifest.json')

/** Written last into an engine's own folder: without it the folder is a failed attempt. */
const markerName = 'engine.json'

interface Marker extends Engine {
  readonly kind: EngineKind
}

const variables: Readonly<Record<EngineKind, string>> = {
  haproxy: 'DRAINABLE_HAPROXY',
  envoy: 'DRAINABLE_ENVOY',
  kube: 'DRAINABLE_KUBE',
  redis: 'DRAINABLE_REDIS',
  nats: 'DRAINABLE_NATS',
  'go-control-plane': 'DRAINABLE_GO_CONTROL_PLANE',
}

/** Runs the program and reads the version that it says; `undefined` when it does not run. */
export function runVersion(kind: EngineKind, path: string): string | undefined {
  try {
    const said = execFileSync(path, [kind === 'haproxy' ? '-v' : '--version'], {
      encoding: 'utf8',
      timeout: 60_000,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    // "HAProxy version 2.6.12-1+deb12u2 ...", "envoy  version: <hash>/1.40.0/Clean/...", "Kubernetes v1.37.0",
    // "Redis server v=7.0.15 sha=...", "nats-server: v2.9.10", "go-control-plane v0.13.4"
    return /(?:version |\/|v=?)(\d+\.\d+(?:\.\d+)?)/i.exec(said)?.[1]
  } catch {
    return undefined
  }
}

export function engine(
  kind: EngineKind,
  path: string,
  from: Engine['from'] = 'script',
): Engine | undefined {
  const version = runVersion(kind, path)
  if (version === undefined) return undefined
  return { version, series: version.split('.', 2).join('.'), path, from }
}

/** Programs named by `DRAINABLE_HAPROXY`, `DRAINABLE_ENVOY` and so on: they take the place of ours. */
export function enginesFromEnvironment(kind: EngineKind): readonly Engine[] | undefined {
  const paths = process.env[variables[kind]]
  if (paths === undefined || paths.trim() === '') return undefined
  return paths.split(',').map((path) => {
    const found = engine(kind, path.trim(), 'environment')
    if (found === undefined) {
      throw new Error(
        `${variables[kind]} names ${path.trim()}, which did not run and say a version`,
      )
    }
    return found
  })
}

export function writeMarker(kind: EngineKind, directory: string, found: Engine): void {
  const marker: Marker = { kind, ...found }
  writeFileSync(join(directory, markerName), `${JSON.stringify(marker, null, 2)}\n`)
}

export function readMarker(directory: string): Marker | undefined {
  try {
    return JSON.parse(readFileSync(join(directory, markerName), 'utf8')) as Marker
  } catch {
    return undefined
  }
}

/** Lists what the folder really holds, and writes the manifest in one step. */
export function writeManifest(): Manifest {
  const manifest: Record<EngineKind, Engine[]> = {
    haproxy: [],
    envoy: [],
    kube: [],
    redis: [],
    nats: [],
    'go-control-plane': [],
  }
  for (const kind of kinds) {
    const named = enginesFromEnvironment(kind)
    if (named !== undefined) manifest[kind].push(...named)
  }
  for (const name of existsSync(enginesDirectory) ? readdirSync(enginesDirectory) : []) {
    const marker = readMarker(join(enginesDirectory, name))
    if (marker === undefined || manifest[marker.kind].some((e) => e.from === 'environment'))
      continue
    const { kind, ...rest } = marker
    manifest[kind].push(rest)
  }
  for (const list of Object.values(manifest)) {
    list.sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))
  }
  const draft = `${manifestPath}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(manifest, null, 2)}\n`)
  renameSync(draft, manifestPath)
  return manifest
}

/** What is installed now, oldest version first. Nothing is installed and nothing is downloaded. */
export function readEngines(kind: EngineKind): readonly Engine[] {
  const named = enginesFromEnvironment(kind)
  if (named !== undefined) return named
  if (!existsSync(manifestPath)) return []
  const manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as Partial<Manifest>
  return (manifest[kind] ?? []).filter((e) => existsSync(e.path))
}
