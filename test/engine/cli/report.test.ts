/** `--report` on a real HAProxy, by a process of its own. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EXIT } from '../../../src/cli/exit-code.js'
import { User } from '../../support/command-child.js'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab } from '../../support/haproxy-lab.js'

/** A COMMAND that no signal ends: it waits for a file, or for the end of what began it. */
function stubborn(began: string, end: string): string {
  return `const { existsSync, writeFileSync } = require('node:fs')
    const parent = process.ppid
    process.on('SIGTERM', () => undefined)
    writeFileSync(${JSON.stringify(began)}, '')
    setInterval(() => {
      if (existsSync(${JSON.stringify(end)}) || process.ppid !== parent) process.exit()
    }, 20)`
}

describe.concurrent.each(engines('haproxy', '3.2'))('--report on HAProxy $version', (engine) => {
  async function open() {
    const it = await lab({ engine })
    const user = new User()
    const url = `haproxy:${it.haproxy.socket}?master=${it.haproxy.master}`
    const report = join(user.home, 'report.html')
    return Object.assign(it, { url, user, report, page: () => readFileSync(report, 'utf8') })
  }

  test('draws a drain, COMMAND and the way back', async () => {
    await using it = await open()
    using user = it.user
    const command = ['--', process.execPath, '-e', '']
    const ended = await user.type('drain', it.url, 'web/s1', '--report', it.report, ...command)
    expect(ended.code).toBe(EXIT.ok)
    for (const words of ['Drain of web/s1', 'idle, verified', 'COMMAND ended', 'made ready again'])
      expect(it.page()).toContain(words)
  })

  test('draws a roll, and leaves stdout to the document', async () => {
    await using it = await open()
    using user = it.user
    const flags = ['--group', 'ref', '--no-wait-healthy', '--json', '--report', it.report]
    const command = ['--', process.execPath, '-e', 'process.exit(3)']
    const ended = await user.type('roll', it.url, 'web', ...flags, ...command)
    expect(JSON.parse(ended.out)).toMatchObject({ exitCode: EXIT.command })
    expect(it.page()).toContain('COMMAND exited with 3')
    expect(it.page()).toMatch(/<td class="warn">! untouched<\/td>/)
  })

  test.each([
    ['one signal', 1, 'ended by SIGTERM'],
    ['two signals', 2, 'ended at once by a second signal'],
  ] as const)('is written when %s end it', async (_, signals, words) => {
    await using it = await open()
    using user = it.user
    const began = join(user.home, 'began')
    const command = ['--', process.execPath, '-e', stubborn(began, join(user.home, 'end'))]
    await using first = user.begin('drain', it.url, 'web/s1', '--report', it.report, ...command)
    await until(() => existsSync(began), 'COMMAND runs', 60_000)
    first.kill('SIGTERM')
    await until(() => first.err.includes('once more'), 'it has heard the first signal', 60_000)
    if (signals === 2) first.kill('SIGTERM')
    else writeFileSync(join(user.home, 'end'), '')
    expect((await first.ended).code).toBe(EXIT.terminated)
    expect(it.page()).toContain(words)
    expect(it.page()).toContain('COMMAND began')
  })

  test('that can not be written is said before anything is changed', async () => {
    await using it = await open()
    using user = it.user
    const ended = await user.type('drain', it.url, 'web/s1', '--report', '/nowhere/a.html')
    expect(ended).toMatchObject({ code: EXIT.usage })
    expect(ended.err).toContain('--report')
    expect((await user.type('status', it.url, 'web/s1')).out).toMatch(/web\/s1 .* ready /)
    expect(existsSync('/nowhere')).toBe(false)
  })
})
