/** The Ansible role beside community.general.haproxy, on a real HAProxy. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { beforeAll, describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { request } from '../../support/haproxy-traffic.js'
import { installOrSkip } from '../../support/skipped.js'
import { until } from '../../support/haproxy.js'
import { installAnsible, type Ansible } from './install.js'
import { COMMAND, EXAMPLES, openStage, type Ended, type Stage } from './stage.js'

const PLAYS = fileURLToPath(new URL('./plays', import.meta.url))

/** Each task of a play starts processes of its own: on a busy machine that takes seconds. */
const SLOW = { timeout: 300_000 }

let ansible: Ansible | undefined

beforeAll(async () => {
  ansible = await installOrSkip('Ansible', installAnsible)
}, 600_000)

interface Played extends Ended {
  /** From the recap. */
  readonly changed: number
}

/** Plays a book with the role at hand. */
async function play(
  { playbook, python, collections }: Ansible,
  { folder, run }: Stage,
  book: string,
  vars: Record<string, unknown>,
  ...more: readonly string[]
): Promise<Played> {
  const file = join(folder, 'vars.json')
  const always = { ansible_python_interpreter: python, drainable_command: COMMAND }
  writeFileSync(file, JSON.stringify({ ...always, ...vars }), { mode: 0o600 })
  const args = ['-i', 'localhost,', '-c', 'local', '-e', `@${file}`, ...more, join(PLAYS, book)]
  const ended = await run(playbook, args, {
    ANSIBLE_ROLES_PATH: join(EXAMPLES, 'ansible', 'roles'),
    ANSIBLE_COLLECTIONS_PATH: collections,
    ANSIBLE_PIPELINING: '1',
  })
  return { ...ended, changed: Number(/changed=(\d+)/.exec(ended.out)?.[1]) }
}

/** What a play has kept in a file. */
function kept(stage: Stage, name: string): unknown {
  return JSON.parse(readFileSync(join(stage.folder, name), 'utf8'))
}

describe.each(engines('haproxy', '3.2'))('Ansible with HAProxy $version', SLOW, (engine) => {
  test('the role drains around tasks, and in check mode changes nothing', async ({ skip }) => {
    if (ansible === undefined) return skip()
    await using stage = await openStage(engine)
    const vars = {
      drainable_balancer: stage.balancer,
      drainable_targets: ['web/s1'],
      drainable_settle: '100ms',
      meanwhile: join(stage.folder, 'meanwhile.json'),
    }
    const checked = await play(ansible, stage, 'around.yml', vars, '--check')
    expect(checked.code, checked.out + checked.err).toBe(0)
    // The drain, the ready after it, and the file that the tasks would write.
    expect(checked.changed).toBe(3)
    expect(await stage.states('web/s1')).toEqual(['ready'])

    const played = await play(ansible, stage, 'around.yml', vars)
    expect(played.code, played.out + played.err).toBe(0)
    expect(played.changed).toBe(3)
    expect(kept(stage, 'meanwhile.json')).toMatchObject({ members: [{ own: 'maint' }] })
    expect(await stage.states('web/s1')).toEqual(['ready'])
  })

  test('a second drain and a second ready are not changed', async ({ skip }) => {
    if (ansible === undefined) return skip()
    await using stage = await openStage(engine)
    const vars = {
      drainable_balancer: stage.balancer,
      drainable_targets: ['web/s1'],
      drainable_settle: '100ms',
    }
    const steps = ['drain', 'drain', 'ready', 'ready']
    const { code, out, err, changed } = await play(ansible, stage, 'steps.yml', { ...vars, steps })
    expect(code, out + err).toBe(0)
    expect(changed).toBe(2)
    expect(await stage.states('web/s1')).toEqual(['ready'])
  })

  test('where the module hangs or is silent, the role is right', async ({ skip }) => {
    if (ansible === undefined) return skip()
    await using stage = await openStage(engine)
    const { haproxy, s1 } = stage.lab
    const isSeen = async (): Promise<boolean> => {
      const stat = await haproxy.cli('show stat')
      return /^dead,s1,.*,DOWN,/m.test(stat) && /^checked,s1,.*,UP,/m.test(stat)
    }
    await until(isSeen, 'the servers are checked')
    const held = request(haproxy.port('checked'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'a request is in flight')
    const { code, out, err } = await play(ansible, stage, 'module.yml', {
      drainable_balancer: stage.balancer,
      socket: haproxy.socket,
      seen: join(stage.folder, 'seen.json'),
    })
    s1.release()
    await held
    expect(code, out + err).toBe(0)
    expect(kept(stage, 'seen.json')).toMatchObject({
      busy: { failed: true, msg: expect.stringContaining("not status 'UP'") as unknown },
      unchecked: { failed: true, msg: expect.stringContaining("not status 'UP'") as unknown },
      down: { failed: true, msg: expect.stringContaining("not status 'DRAIN'") as unknown },
      mistyped: { failed: false, changed: false },
      roleDown: { exitCode: 0, report: { outcome: 'idle' } },
      roleMistyped: { exitCode: 6, error: { code: 'NOT_FOUND' } },
    })
  })

  test('stops at an unverified idle unless accepted; repeats no password', async ({ skip }) => {
    if (ansible === undefined) return skip()
    await using stage = await openStage(engine)
    await using fake = await startFake({ pools: { web: ['s1', 's2'] }, password: 'Hid-den-77' })
    const vars = {
      drainable_balancer: `dataplane+${fake.url}`,
      drainable_username: fake.username,
      drainable_password: 'Hid-den-77',
      drainable_targets: ['web/s1'],
      steps: ['drain'],
    }
    const { code, out, err } = await play(ansible, stage, 'steps.yml', vars, '-vvvv')
    expect(code, out + err).toBe(2)
    expect(out + err).toMatch(/idle, and not verified: \w+/)
    expect(out + err).not.toContain('Hid-den-77')
    const accepting = { ...vars, drainable_accept: ['unverified'] }
    const accepted = await play(ansible, stage, 'steps.yml', accepting)
    expect(accepted.code, accepted.out + accepted.err).toBe(0)
  })
})
