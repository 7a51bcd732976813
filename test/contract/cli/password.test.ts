/** Where the command takes a password from. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'

const at = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const COMMAND = [
  process.execPath,
  ...['--import', at('scripts/source.mjs'), at('src/cli/main.ts')],
] as const

test('a password can come from a pipe, which gives it once', async () => {
  await using fake = await startFake({ pools: { web: ['s1'] }, password: 'Hid-den-77' })
  const script = 'printf "%s\\n" "$GIVEN" | "$@" --password-file /dev/stdin'
  const call = [
    ...COMMAND,
    'status',
    '--json',
    `dataplane+${fake.url}`,
    '--username',
    fake.username,
  ]
  const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', ...call], {
    env: { ...process.env, GIVEN: fake.password },
  })
  expect(JSON.parse(stdout)).toMatchObject({ exitCode: 0, members: [{ own: 'ready' }] })
})
