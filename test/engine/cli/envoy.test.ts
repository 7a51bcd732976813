/** The command on a real Envoy whose endpoints are a file. */
import { describe, expect, test } from 'vitest'
import { EXIT } from '../../../src/cli/exit-code.js'
import { User } from '../../support/command-child.js'
import { engines } from '../../support/engines.js'
import { fileStage } from '../../support/envoy/stage.js'

const NODE = process.execPath

describe.each(engines('envoy', '1.40'))('the command on Envoy $version', ({ path }) => {
  test('drains one of three servers, runs COMMAND and makes it ready', async () => {
    await using stage = await fileStage(path, { servers: 3 })
    using user = new User()
    const url = `envoy+file:${stage.file}?admin=${stage.proxy.admin}`
    const target = `web/${stage.a.member}`
    const flags = ['--expect', '1', '--timeout', '60s']
    const ended = await user.document('drain', url, target, ...flags, '--', NODE, '-e', '')
    expect(ended).toMatchObject({ command: { status: 0 }, report: { outcome: 'idle' } })
    expect(ended.exitCode).toBe(EXIT.ok)
    const { members } = await user.document('status', url, target)
    expect(members).toMatchObject([{ own: 'ready' }])
  })
})
