import { expect, test } from 'vitest'
import { TestIo } from '../../support/command.js'

const NOWHERE = 'haproxy:/nowhere/admin.sock'

async function refused(...argv: string[]): Promise<string> {
  using io = new TestIo()
  const { code, out, err } = await io.play(...argv)
  expect(code).toBe(2)
  expect(out).toBe('')
  return err
}

test('an unknown verb names the nearest', async () => {
  expect(await refused('drian')).toContain('Did you mean drain?')
})

test('an unknown option names the nearest', async () => {
  expect(await refused('drain', NOWHERE, 'web/a', '--timeot', '2m')).toContain('--timeout')
})

test('an unknown option is not repeated with its value', async () => {
  const words = await refused('drain', NOWHERE, 'web/a', '--timeot=2m', '--pw=hunter2')
  expect(words).toContain('Did you mean --timeout?')
  expect(await refused('drain', NOWHERE, 'web/a', '--pw=hunter2')).not.toContain('hunter2')
})

test('an unknown value names those that there are', async () => {
  const words = await refused('drain', NOWHERE, 'web/a', '--on-timeout', 'kill')
  expect(words).toContain('fail, terminate, proceed')
})

test.each([
  ['drain', '--timeout'],
  ['drain', '--settle'],
  ['watch', '--timeout'],
  ['ready', '--wait-healthy'],
])('a bare number is asked back: %s %s', async (verb, flag) => {
  expect(await refused(verb, NOWHERE, 'web/a', flag, '30')).toContain("did you mean '30s'?")
})

test.each(['1m30s', 'soon', '30 s', '-5s'])(
  'a time that is none names the form: %s',
  async (text) => {
    const words = await refused('drain', NOWHERE, 'web/a', `--timeout=${text}`)
    expect(words).toContain(`--timeout is '${text}', expected one number and its unit`)
    expect(words).not.toContain('30000')
  },
)

test.each([
  ['drain', '--keep-ready', 'x', ": found 'x', expected a whole number"],
  ['drain', '--escalate-after', 'never', " is 'never', expected one number and its unit"],
  ['drain', '--pace', 'never', " is 'never', expected one number and its unit"],
  ['watch', '--settle', 'never', " is 'never', expected one number and its unit"],
  ['drain', '--id', 'a b', ': expected 1 to 200 letters'],
  ['drain', '--owner', '', ': expected 1 to 200 characters'],
  ['plan --roll', '--canary', 'x', ": found 'x', expected a whole number"],
  ['plan --roll', '--max-failed', 'x', ": found 'x', expected a whole number"],
  [
    'plan --roll',
    '--max-unavailable',
    'x',
    ": found 'x', expected a whole number from 1, or a percentage",
  ],
  ['plan --roll', '--max-unavailable', '0', ': expected a whole number from 1, or a percentage'],
  ['ready', '--timeout', '0', ' is 0, in which no member is made ready'],
  ['ready', '--wait-healthy', '0', ' is 0, in which no member is made ready'],
  ['plan --roll', '--wait-healthy', '0s', ' is 0, in which no member is made ready'],
  ['drain', '--wait-healthy', '30s', ' is for what is made ready after COMMAND, and there is none'],
  ['drain', '--tickets', '', ': the name of the folder is empty'],
  ['plan', '--group', 'ref', ' is for the plan of a roll: add --roll'],
  ['plan', '--on-timeout', 'postpone', ' postpone is for the plan of a roll: add --roll'],
])('a refused option is named as its flag: %s %s', async (verb, flag, value, words) => {
  const said = await refused(...verb.split(' '), NOWHERE, 'web/a', flag, value)
  expect(said).toBe(`drainable: ${flag}${words}${said.split(words)[1] ?? ''}`)
})

test.each([
  ['drain', 'default: fail, which leaves it drained)'],
  ['roll', 'default: postpone, which tries it once more after all others)'],
  ['plan', 'with --roll postpone, which tries it once more after all others)'],
])('the help of %s has its own default of --on-timeout', async (verb, words) => {
  using io = new TestIo()
  expect((await io.play(verb, '--help')).out.replace(/\s+/g, ' ')).toContain(words)
})

test('a time that must end is not told to be never', async () => {
  expect(await refused('drain', NOWHERE, 'web/a', '--pace', '1')).not.toContain('never')
  expect(await refused('drain', NOWHERE, 'web/a', '--pace', 'x')).not.toContain('never')
  expect(await refused('drain', NOWHERE, 'web/a', '--timeout', 'x')).toContain('or never')
})

test('the help of a verb that there is not is refused', async () => {
  expect(await refused('help', 'why')).toContain("unknown command 'why'")
  expect(await refused('help', 'drian')).toContain('Did you mean drain?')
})

test('an endpoint file that is not there is named', async () => {
  const words = await refused('status', 'envoy+file:/nowhere/web.json?admin=http://127.0.0.1:1')
  expect(words).toContain('the file /nowhere/web.json can not be read (ENOENT)')
})

test("a '--' without COMMAND is refused", async () => {
  expect(await refused('drain', NOWHERE, 'web/a', '--')).toContain("nothing stands after '--'")
})

test.each([
  ['undrain', 'ready'],
  ['list', 'status'],
  ['undo', 'restore'],
])('the word of other tools names ours: %s', async (theirs, ours) => {
  expect(await refused(theirs, NOWHERE)).toContain(`did you mean '${ours}'?`)
})

test('--dry-run names the verb plan', async () => {
  expect(await refused('drain', NOWHERE, 'web/a', '--dry-run')).toContain("the verb 'plan'")
})

test('a target before the balancer is told the order', async () => {
  expect(await refused('drain', 'web/a', NOWHERE)).toContain('the balancer stands first')
})

test('a wrong option says where the options are listed', async () => {
  expect(await refused('drain', NOWHERE, 'web/a', '--force')).toContain("'drainable VERB --help'")
})

test.each(['ready', 'status', 'watch', 'plan', 'restore', 'orphans'])(
  'the usage has the words of the docs: %s',
  async (verb) => {
    using io = new TestIo()
    const { out } = await io.play(verb, '--help')
    expect(out).toContain(`Usage: drainable ${verb} [options] BALANCER`)
  },
)

test.each(['--password=hunter2', '--password', '--token=hunter2'])(
  'a secret on the command line is refused: %s',
  async (flag) => {
    const words = await refused('status', NOWHERE, flag, 'hunter2')
    expect(words).toContain('DRAINABLE_PASSWORD')
    expect(words).not.toContain('hunter2')
  },
)

test('a verb without COMMAND refuses one', async () => {
  expect(await refused('status', NOWHERE, '--', 'true')).toContain('status runs no COMMAND')
})

test('a roll without COMMAND is refused', async () => {
  expect(await refused('roll', NOWHERE, 'web')).toContain('a roll needs COMMAND')
})

test('a path as a balancer names its URL', async () => {
  expect(await refused('status', '/run/admin.sock')).toContain('haproxy:/run/admin.sock')
})

test('--json and --jsonl exclude each other', async () => {
  expect(await refused('status', NOWHERE, '--json', '--jsonl')).toContain('--jsonl')
})

test('the help has every verb and every exit status', async () => {
  using io = new TestIo()
  const { code, out } = await io.play('--help')
  expect(code).toBe(0)
  for (const verb of ['drain', 'ready', 'status', 'watch', 'plan', 'roll', 'resume', 'orphans'])
    expect(out).toContain(`\n  ${verb} `)
  expect(out).toContain('143  ended by SIGTERM')
  expect(out).toContain('envoy-listener+http://')
})

test('a document of a refused call fits its schema', async () => {
  using io = new TestIo()
  const { exitCode, error } = await io.document('drain', 'nonsense', 'web/a')
  expect([exitCode, error?.code]).toEqual([2, 'INVALID_OPTIONS'])
})

test.each(['--until', '--no\u001b[31mnsense'])(
  'what is repeated of a wrong argument is short, and moves no cursor: %j',
  async (flag) => {
    const value = `a\u001b[31m${'x'.repeat(50_000)}`
    const words = await refused('drain', NOWHERE, 'web/a', flag, value)
    expect(words).not.toContain('\u001b')
    expect(words.length).toBeLessThan(3_000)
  },
)

test('a wrong number of members is repeated in short', async () => {
  const words = await refused('drain', NOWHERE, 'web/a', '--expect', 'x'.repeat(50_000))
  expect(words).toContain("--expect: found 'xxx")
  expect(words.length).toBeLessThan(1_000)
})
