/**
 * Installs the real load balancers that the engine tests and the demo run, into the git-ignored folder `.engines/`.
 *
 *     npm run engines                        # HAProxy 2.6, 3.0, 3.2 or later, 3.4 where it is to be had, Envoy 1.40 and 1.39,
 *                                        # Redis and NATS for the leases
 *     npm run engines -- haproxy-3.0 kube    # only these
 *     npm run engines -- go-control-plane    # for the tests of Envoy beside another control plane; needs Go
 *
 * A second run finds everything in place and only says the versions.
 */
import { mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { catalog, usualEngines } from './catalog.ts'
import type { CatalogEntry } from './catalog.ts'
import {
  engine,
  enginesDirectory,
  enginesFromEnvironment,
  readMarker,
  writeManifest,
  writeMarker,
} from './manifest.ts'
import type { Engine } from './manifest.ts'

const asked = process.argv.slice(2).filter((word) => word !== '--')
const names = asked.length > 0 ? asked : usualEngines
const unknown = names.filter((name) => !catalog.some((entry) => entry.name === name))
if (unknown.length > 0) {
  console.error(`no such engine: ${unknown.join(', ')}`)
  console.error(`there are: ${catalog.map((entry) => entry.name).join(', ')}`)
  process.exit(2)
}

mkdirSync(enginesDirectory, { recursive: true })
const began = performance.now()
const wanted = catalog.filter((entry) => names.includes(entry.name))
const results = await Promise.all(wanted.map((entry) => provide(entry)))
writeManifest()
const seconds = ((performance.now() - began) / 1000).toFixed(1)
const missing = wanted.filter((_, index) => results[index] === false)
console.log(
  `engines: ${wanted.length - missing.length} of ${wanted.length} in place after ${seconds} s`,
)
process.exitCode = missing.every(({ optional }) => optional) ? 0 : 1

async function provide(entry: CatalogEntry): Promise<boolean> {
  const say = (text: string) => {
    console.log(`${entry.name.padEnd(12)} ${text}`)
  }
  try {
    const named = enginesFromEnvironment(entry.kind)
    if (named !== undefined) {
      say(`${named.map((e) => `${e.version} (${e.path})`).join(', ')}, named by the environment`)
      return true
    }
    const directory = join(enginesDirectory, entry.name)
    const release = await lock(`${directory}.lock`, say)
    try {
      const present = check(entry, readMarker(directory)?.path)
      if (present !== undefined) {
        say(`${present.version}, in place`)
        return true
      }
      const reason = await entry.whyNot()
      if (reason !== undefined) {
        say(`${absent(entry)}: ${reason}`)
        return false
      }
      rmSync(directory, { recursive: true, force: true })
      mkdirSync(directory, { recursive: true })
      const path = await entry.install(directory)
      const found = check(entry, path)
      if (found === undefined) {
        const version = engine(entry.kind, path)?.version
        const what = version === undefined ? 'does not run' : `says it is ${version}`
        throw new Error(`${path} was installed but ${what}`)
      }
      writeMarker(entry.kind, directory, found)
      say(`${found.version}, installed`)
      return true
    } finally {
      release()
    }
  } catch (error) {
    say(`${absent(entry)}: ${error instanceof Error ? error.message : String(error)}`)
    return false
  }
}

function absent({ optional }: CatalogEntry): string {
  return optional ? 'not to be had' : 'MISSING'
}

function check(entry: CatalogEntry, path: string | undefined): Engine | undefined {
  const found = path === undefined ? undefined : engine(entry.kind, path)
  return found !== undefined && entry.accepts(found.version) ? found : undefined
}

/** Two runs at once would fill one folder together: the second waits for the first. */
async function lock(path: string, say: (text: string) => void): Promise<() => void> {
  for (let tried = 0; ; tried++) {
    try {
      const file = openSync(path, 'wx')
      writeSync(file, String(process.pid))
      return () => {
        rmSync(path, { force: true })
      }
    } catch {
      if (!isHeld(path)) rmSync(path, { force: true })
      else if (tried === 1) say(`waits for another run that fills it (${path})`)
      await pause(200)
    }
  }
}

function isHeld(path: string): boolean {
  try {
    const pid = Number(readFileSync(path, 'utf8'))
    // An empty file is one that its owner is about to fill.
    return pid === 0 || process.kill(pid, 0)
  } catch {
    return false
  }
}
