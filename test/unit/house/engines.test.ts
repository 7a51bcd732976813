import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  enginesFromEnvironment,
  readEngines,
  runVersion,
} from '../../../scripts/engines/manifest.ts'
import { run } from '../../../scripts/engines/run.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drainable-engines-'))
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

function program(name: string, says: string): string {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\necho '${says}'\n`)
  chmodSync(path, 0o755)
  return path
}

describe('the version that an engine says', () => {
  it.each([
    ['haproxy', 'HAProxy version 2.6.12-1+deb12u2 2025/04/16 - https://haproxy.org/', '2.6.12'],
    ['haproxy', 'HAProxy version 3.3-dev4 2025/07/11 - https://haproxy.org/', '3.3'],
    ['envoy', '/tmp/envoy  version: 3b1e/1.40.0/Clean/RELEASE/BoringSSL', '1.40.0'],
    ['kube', 'Kubernetes v1.37.0', '1.37.0'],
  ] as const)('of %s is read from "%s"', (kind, says, version) => {
    expect(runVersion(kind, program('engine', says))).toBe(version)
  })

  it('is missing for a program that does not run', () => {
    expect(runVersion('haproxy', join(folder, 'nothing'))).toBeUndefined()
  })
})

describe('engines of the environment', () => {
  it('take the place of installed ones', () => {
    const paths = [program('a', 'HAProxy version 2.6.1'), program('b', 'HAProxy version 3.0.2')]
    vi.stubEnv('DRAINABLE_HAPROXY', paths.join(', '))
    expect(readEngines('haproxy').map((engine) => [engine.series, engine.path])).toEqual([
      ['2.6', paths[0]],
      ['3.0', paths[1]],
    ])
  })

  it('are an error when one of them does not run', () => {
    vi.stubEnv('DRAINABLE_ENVOY', join(folder, 'nothing'))
    expect(() => enginesFromEnvironment('envoy')).toThrow(/DRAINABLE_ENVOY names .*nothing/)
  })
})

describe('a slow program of an installation', () => {
  // Its input is a pipe that nothing writes to: it never ends by itself.
  const talks = ['-c', 'echo compiling k8s.io/api; exec cat']

  it('is given up after its time, with its last words', async () => {
    await expect(run('sh', talks, { timeout: 1_500 })).rejects.toThrow(
      /^sh -c .* was given up: it did not end within 1.5 s; it said last: compiling k8s.io.api$/,
    )
  })

  it('is given up after a long silence, however much time is left', async () => {
    await expect(run('sh', talks, { silence: 300 })).rejects.toThrow('it said nothing for 0.3 s')
  })

  it('that fails or is killed fails at once', async () => {
    await expect(run('sh', ['-c', 'echo no space >&2; exit 3'])).rejects.toThrow('failed: no space')
    await expect(run('sh', ['-c', 'kill -KILL $$'])).rejects.toThrow('failed by SIGKILL: nothing')
  })
})
