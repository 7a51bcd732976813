/** The step of the GitHub Action, on a real HAProxy and with the variables that a runner gives it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { request } from '../../support/haproxy-traffic.js'
import {
  COMMAND,
  EXAMPLES,
  openStage,
  start,
  type Ended,
  type Stage,
  type Started,
} from './stage.js'

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>
  readonly outputs: Readonly<Record<string, { readonly value: string }>>
  readonly runs: {
    readonly steps: readonly [
      { readonly env: Readonly<Record<string, string>>; readonly run: string },
    ]
  }
}

const FOLDER = join(EXAMPLES, 'github-action')
const action = parse(readFileSync(join(FOLDER, 'action.yml'), 'utf8')) as Action
const [step] = action.runs.steps

interface Acted extends Ended {
  readonly outputs: Readonly<Record<string, string>>
}

/** Starts the step as a runner does: inputs become its variables, its outputs are read from a file. */
function begin(
  stage: Stage,
  given: Readonly<Record<string, string>>,
): Started & { readonly acted: Promise<Acted> } {
  const inputs: Record<string, string> = { command: COMMAND.join(' '), balancer: stage.balancer }
  Object.assign(inputs, given)
  const env = Object.entries(step.env).map(([name, value]) => {
    const [, input = ''] = /^\$\{\{ inputs\.([\w-]+) \}\}$/.exec(value) ?? []
    const set = inputs[input] ?? action.inputs[input]?.default
    if (set === undefined) throw new Error(`${name}: there is no value for ${value}`)
    return [name, set]
  })
  const file = join(stage.folder, 'output')
  writeFileSync(file, '')
  const started = start('bash', ['-c', step.run], {
    ...(Object.fromEntries(env) as Record<string, string>),
    HOME: stage.folder,
    GITHUB_ACTION_PATH: FOLDER,
    GITHUB_OUTPUT: file,
    RUNNER_TEMP: stage.folder,
  })
  const acted = started.ended.then((ended) => {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const outputs = Object.fromEntries(
      lines.map((line) => [line.split('=', 1)[0] ?? '', line.slice(line.indexOf('=') + 1)]),
    )
    return { ...ended, outputs }
  })
  return { ...started, acted }
}

function act(stage: Stage, given: Readonly<Record<string, string>>): Promise<Acted> {
  return begin(stage, given).acted
}

describe.each(engines('haproxy', '3.2'))('GitHub Action with HAProxy $version', (engine) => {
  test('drains, runs the lines meanwhile, and gives its outputs', async () => {
    await using stage = await openStage(engine)
    const ended = await act(stage, {
      target: 'web/s1',
      args: '--settle=100ms\n--keep-ready=1\n',
      run: 'echo "$DRAINABLE_MEMBER" > "$HOME/member"\nfalse || true',
    })
    expect(ended, ended.err).toMatchObject({
      code: 0,
      outputs: { outcome: 'idle', verified: 'true', status: '0' },
    })
    expect(Object.keys(ended.outputs)).toEqual(Object.keys(action.outputs))
    expect(readFileSync(join(stage.folder, 'member'), 'utf8')).toBe('web/s1\n')
    expect(JSON.parse(readFileSync(ended.outputs['report'] ?? '', 'utf8'))).toMatchObject({
      verb: 'drain',
      changed: true,
    })
    expect(await stage.states('web/s1')).toEqual(['ready'])
  })

  test('a failed line leaves the server drained and fails the step', async () => {
    await using stage = await openStage(engine)
    const ended = await act(stage, { target: 'web/s1', args: '--settle=100ms', run: 'false\ntrue' })
    expect(ended, ended.err).toMatchObject({ code: 12, outputs: { status: '12' } })
    expect(ended.out).toContain('::error title=drainable::status 12')
    expect(await stage.states('web/s1')).toEqual(['maint'])
  })

  test('a cancelled job ends the drain by its policy', async () => {
    await using stage = await openStage(engine)
    const { haproxy, s1 } = stage.lab
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'a request is in flight')
    const { child, acted } = begin(stage, { target: 'web/s1', args: '--on-abort=restore' })
    await until(async () => (await stage.states('web/s1'))[0] === 'drain', 'it is drained')
    // The runner signals the shell of the step alone.
    child.kill('SIGINT')
    expect(await acted).toMatchObject({ code: 130, outputs: { outcome: 'aborted' } })
    expect(await stage.states('web/s1')).toEqual(['ready'])
    s1.release()
    await answer
  })

  test('what an input contains is never run', async () => {
    await using stage = await openStage(engine)
    const target = 'web/$(touch${IFS}$HOME/run)'
    const ended = await act(stage, { verb: 'status', target })
    expect(ended).toMatchObject({ code: 6, outputs: { outcome: 'error', verified: 'false' } })
    expect((await stage.run('ls', [stage.folder])).out).not.toContain('run\n')
  })
})
