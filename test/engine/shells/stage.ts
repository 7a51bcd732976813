/** What a tool that calls the command finds: the command, a balancer, a folder of its own. */
import { execFile, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { select, type MemberRef } from 'drainable'
import type { Engine } from '../../support/engines.js'
import { lab, site, type Lab } from '../../support/haproxy-lab.js'

const at = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** The examples that are tested. */
export const EXAMPLES = at('examples')

/** The command, from the sources. */
export const COMMAND = [
  process.execPath,
  ...['--import', at('scripts/source.mjs'), at('src/cli/main.ts')],
] as const

export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** A HAProxy, and a folder in which a program finds its home. */
export interface Stage extends AsyncDisposable {
  readonly lab: Lab
  readonly folder: string
  readonly balancer: string
  /** Runs a program to its end. */
  readonly run: (
    file: string,
    args: readonly string[],
    env?: Record<string, string>,
  ) => Promise<Ended>
  /** The own states of members, as `pool/member`. */
  states(...names: readonly string[]): Promise<readonly string[]>
}

/** `web` has no checks; `checked` is up; `dead` is down. */
export async function openStage(engine: Engine): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'drainable-shells-'))
  const config = (port: (name: string) => number): string => `${site(port, 'web')}
${site(port, 'checked', { s1: 'check inter 100ms' })}
${site(port, 'dead').replace(`127.0.0.1:${port('s1')}`, `127.0.0.1:${port('nobody')} check inter 100ms`)}
`
  const opened = await lab({ engine, config })
  return {
    lab: opened,
    folder,
    balancer: `haproxy:${opened.haproxy.socket}?master=${opened.haproxy.master}`,
    run: (file, args, env = {}) => run(file, args, { HOME: folder, ...env }),
    async states(...names) {
      await using lb = opened.provider()
      const refs = names.map((name): MemberRef => {
        const [pool = '', member = ''] = name.split('/')
        return { pool, member }
      })
      const readings = await select(lb, refs)
      return readings.map((reading) => (reading.present ? reading.own : 'absent'))
    },
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs a program to its end, with nothing of this process but the PATH. */
export function run(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<Ended> {
  return start(file, args, env).ended
}

/** A program that runs. It is killed after four minutes. */
export interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

/** Starts a program, with nothing of this process but the PATH. */
export function start(file: string, args: readonly string[], env: Record<string, string>): Started {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const options = {
    timeout: 240_000,
    maxBuffer: 16 * 1024 * 1024,
    env: { PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8', ...env },
  }
  const child = execFile(file, args, options, (error, out, err) => {
    const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
    resolve({ code, out, err })
  })
  return { child, ended: promise }
}
