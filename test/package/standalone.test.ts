import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startFake, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/package/entries.ts'
import { buildStandalone, ownPlatform } from '../../scripts/standalone/build.ts'

const run = promisify(execFile)
const platform = ownPlatform()

function urlOf({ socket, master }: HaproxyFake): string {
  const query = typeof master === 'string' ? `?master=${master}` : ''
  return typeof socket === 'string'
    ? `haproxy:${socket}${query}`
    : `haproxy://${socket.host}:${socket.port}`
}

describe.skipIf(platform === undefined)('the executable for hosts without Node', () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'standalone-'))
    const built = await buildStandalone([platform!], folder)
    program = built.get(platform!)!
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** Nothing of this machine's Node can be found from there. */
  const call = (...args: readonly string[]) => run(program, args, { env: {}, cwd: folder })

  it('has the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
      version: string
    }
    expect((await call('--version')).stdout.trim()).toBe(version)
  })

  it('reads the members of a balancer', async () => {
    await using fake = await startFake({ pools: { web: ['web1'] } })
    const { stdout, stderr } = await call('status', urlOf(fake), '--json')
    const { members } = JSON.parse(stdout) as { members: { ref: object }[] }
    expect(members.map(({ ref }) => ref)).toEqual([{ pool: 'web', member: 'web1' }])
    expect(stderr).toBe('')
  })

  it('drains with a report', async () => {
    await using fake = await startFake({
      pools: { web: ['web1', 'web2'] },
      path: join(folder, 'b'),
      master: true,
    })
    const socket = urlOf(fake)
    const report = join(folder, 'report.html')
    await call('drain', socket, 'web/web1', '--no-tickets', '--report', report)
    expect(readFileSync(report, 'utf8')).toContain('Drain of web/web1')
  })

  it('holds what a balancer with an API needs', async () => {
    const asked = call('status', 'envoy-listener+http://127.0.0.1:1')
    await expect(asked).rejects.toMatchObject({ code: 7 })
  })

  it('comes with the licences of what is in it', () => {
    const notices = readFileSync(join(folder, 'THIRD-PARTY-NOTICES.md'), 'utf8')
    for (const name of ['Node.js', 'commander', 'undici', 'zod'])
      expect(notices).toContain(`\n## ${name} `)
  })
})
