/** `.ci/run` with commands that only note that they were called: what is fast comes first, and its failure ends the run. */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../../../scripts/package/entries.ts'

const COMMANDS = ['npm', 'npx', 'git', 'vitest', 'apt-get', 'renice', 'chromium-headless-shell']

/** Every command that `.ci/run` calls, in this order, with one that fails. */
async function callsOf(failing: string): Promise<readonly string[]> {
  using dir = mkdtempDisposableSync(join(tmpdir(), 'drainable-ci-'))
  const at = (...path: string[]): string => join(dir.path, ...path)
  const [calls, bin] = [at('calls.txt'), at('bin')]
  cpSync(`${root}.ci`, at('.ci'), { recursive: true })
  cpSync(`${root}README.md`, at('README.md'))
  writeFileSync(at('.ci/check-demo.mjs'), '')
  mkdirSync(bin)
  const script = `#!/usr/bin/env bash
echo "$(basename "$0") $*" >>'${calls}'
[ "$(basename "$0")" != git ] || mkdir -p "\${@: -1}"
[ "$(basename "$0") $*" != '${failing}' ]
`
  for (const command of COMMANDS) {
    writeFileSync(join(bin, command), script)
    chmodSync(join(bin, command), 0o755)
  }
  const PATH = [bin, dirname(process.execPath), '/usr/bin', '/bin'].join(':')
  await new Promise<void>((resolve) => {
    execFile(at('.ci/run'), { env: { PATH, TMPDIR: dir.path } }, () => resolve())
  })
  return existsSync(calls) ? readFileSync(calls, 'utf8').trimEnd().split('\n') : []
}

const LONG = /engines|mutate|vitest run|bench/

it.each(['npm run -s lint', 'npm run -s typecheck', 'npm test'])(
  'a failing %s ends .ci/run before the long parts',
  async (failing) => {
    const calls = await callsOf(failing)
    expect(calls).toContain(failing)
    expect(calls.filter((call) => LONG.test(call))).toEqual([])
  },
)

it('.ci/run goes on to the long parts, and checks nothing twice', async () => {
  const calls = await callsOf('nothing')
  const times = (command: string) => calls.filter((call) => call === command).length
  expect(['npm run -s lint', 'npm run -s typecheck', 'npm test'].map(times)).toEqual([1, 1, 1])
  expect(times('npm run -s engines')).toBe(1)
})
