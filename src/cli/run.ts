import { Command, CommanderError } from 'commander'
import { EXIT } from './exit-code.js'
import { afterHelp, common, onUnreachable, policy, rolling, waitHealthy } from './flags.js'
import type { Io } from './io.js'
import type { Form } from './printer/printer.js'
import type { Reporting } from './report/reporting.js'
import type { Result, Verb } from './result.js'
import type { CommonOptions, Session } from './session.js'
import { secretIn } from './url.js'
import { without } from './without.js'
import { failed } from './verbs/ending.js'
import type { DrainFlags } from './verbs/drain.js'
import type { PlanFlags, ReadyFlags, StatusFlags, WatchFlags } from './verbs/look.js'
import type { RollFlags } from './verbs/roll.js'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'
import { version } from './version.js'
import { withFlags } from './words/flags.js'

/**
 * Runs the command.
 *
 * @param argv - the arguments after the program's name
 * @returns the exit status; the table in docs/command.md says what each means
 */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  const at = argv.indexOf('--')
  const own = at < 0 ? argv : argv.slice(0, at)
  const command = at < 0 ? [] : argv.slice(at + 1)
  let code: number = EXIT.ok
  try {
    refuseSecrets(own)
    refuseOtherTools(own)
    if (at >= 0 && command.length === 0)
      throw usage("nothing stands after '--': give COMMAND there, or leave out '--'")
    const program = makeProgram(io, command, (ended) => {
      code = ended
    })
    await program.parseAsync(withoutStrayValues(program, asked(program, own)), { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const { exitCode, error: data } = failed(error)
    io.stderr.write(`drainable: ${withFlags(data.message)}\n`)
    return exitCode
  }
}

/** A secret on the command line is seen by every user of the machine. It is not repeated in the refusal. */
function refuseSecrets(argv: readonly string[]): void {
  for (const word of argv) {
    const [, flag] = /^--?((?:user-?)?pass(?:word|wd)?|token|secret)(?:=|$)/i.exec(word) ?? []
    if (flag !== undefined) throw secretIn('the command line', `--${flag}`)
  }
}

/** What other tools call these verbs. The nearest name would be wrong: for `undrain` it is `drain`. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  undrain: 'ready',
  enable: 'ready',
  up: 'ready',
  list: 'status',
  ls: 'status',
  show: 'status',
  disable: 'drain',
  maint: 'drain',
  undo: 'restore',
  rollback: 'restore',
  version: '--version',
}

function refuseOtherTools([verb = '', ...rest]: readonly string[]): void {
  const ours = Object.hasOwn(ELSEWHERE, verb) ? ELSEWHERE[verb] : undefined
  if (ours !== undefined) throw usage(`there is no '${verb}'; did you mean '${ours}'?`)
  if (rest.includes('--dry-run'))
    throw usage("there is no --dry-run; the verb 'plan' says what a drain would do")
}

/** The help of a verb that there is not is refused like that verb. */
function asked({ commands }: Command, argv: readonly string[]): readonly string[] {
  const [first, verb] = argv
  const isKnown = verb === undefined || commands.some((one) => one.name() === verb)
  return first === 'help' && !isKnown ? argv.slice(1) : argv
}

/**
 * An option that there is not, such as `--timeot=30s`, without its value: its name alone has a nearest one, and the value
 * can be a secret.
 */
function withoutStrayValues(program: Command, argv: readonly string[]): string[] {
  const known = new Set(program.commands.flatMap(({ options }) => options.map(({ long }) => long)))
  return argv.map((word) => {
    const [, flag] = /^(--[^=]+)=/.exec(word) ?? []
    return flag === undefined || known.has(flag) ? word : flag
  })
}

function usage(message: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', message)
}

const BALANCER = [
  '<balancer>',
  'a URL, a name from --config, several names with commas, or all',
] as const
const TARGETS = [
  '<target...>',
  'pool/member, pool/ for a whole pool, or an address; of several balancers NAME:pool/member',
] as const

type Done = (exitCode: number) => void

/** The options of every verb: a verb itself does not see them. */
const COMMON: readonly (keyof CommonOptions)[] = [
  'config',
  'username',
  'passwordFile',
  'ca',
  'insecure',
  'json',
  'jsonl',
  'report',
  'tickets',
]

/** The verbs that run COMMAND. */
const WITH_COMMAND: readonly Verb[] = ['drain', 'roll', 'resume']

function formOf({ json, jsonl }: CommonOptions): Form {
  if (jsonl === true) return 'jsonl'
  return json === true ? 'json' : 'words'
}

/** The result of a call whose balancer could not be opened. */
function notBegun(verb: Verb, error: unknown): Result {
  const changed = verb === 'drain' || verb === 'resume' ? { changed: false } : {}
  return { verb, ...changed, ...failed(error) } as Result
}

/** What every verb is given beside its own arguments. */
type Flags<T> = T & CommonOptions

/** The parser repeats what it was given: each line of it is made safe to print, and short. */
function asLines(text: string): string {
  return text
    .split('\n')
    .map((line) => quote(line, 1_000))
    .join('\n')
}

function makeProgram(io: Io, command: readonly string[], done: Done): Command {
  const program = new Command('drainable')
    .description(
      'Take a server out of a load balancer with nothing dropped, and know when it is truly idle.',
    )
    .version(version, '-V, --version')
    .exitOverride()
    .showHelpAfterError(
      "('drainable --help' lists the verbs, 'drainable VERB --help' the options of one)",
    )
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(asLines(text)),
      getOutHelpWidth: () => io.stdout.columns ?? 100,
      getErrHelpWidth: () => io.stderr.columns ?? 100,
    })
    .addHelpText('after', afterHelp)
  const call = async <T>(
    verb: Verb,
    balancer: string,
    flags: Flags<T>,
    body: (session: Session, own: T) => Promise<Result>,
  ): Promise<void> => {
    if (command.length > 0 && !WITH_COMMAND.includes(verb))
      program.error(`error: ${verb} runs no COMMAND: leave out '--' and what stands after it`)
    const { openPrinter } = await import('./printer/printer.js')
    const { withSession } = await import('./session.js')
    let told: Reporting = { printer: await openPrinter(io, formOf(flags), verb), io }
    const own = without(flags, COMMON) as unknown as T
    const begin = async (): Promise<Result> => {
      told = await withReport(flags.report, verb, told)
      return withSession(told.io, balancer, flags, told.printer, (session) => body(session, own))
    }
    const result = await begin().catch((error: unknown) => notBegun(verb, error))
    told.printer.end(result)
    done(result.exitCode)
  }

  common(policy(program.command('drain')))
    .description('drain, run COMMAND while it is held, make ready again')
    .argument(...BALANCER)
    .argument(...TARGETS)
    .option('--expect <n>', 'refuse if the target hits another number of members')
    .option('--leave', 'leave the members drained after COMMAND')
    .addOption(waitHealthy())
    .usage('[options] BALANCER TARGET... [-- COMMAND...]')
    .action((balancer: string, targets: string[], flags: Flags<DrainFlags>) =>
      call('drain', balancer, flags, async (session, own) => {
        const { drainVerb } = await import('./verbs/drain.js')
        return drainVerb(session, targets, command, own)
      }),
    )

  common(program.command('ready'))
    .description('make members ready, whoever drained them')
    .argument(...BALANCER)
    .argument(...TARGETS)
    .option('--expect <n>', 'refuse if the target hits another number of members')
    .option('--timeout <time>', 'how long it may take, such as 2m (default: 30s)')
    .addOption(waitHealthy())
    .usage('[options] BALANCER TARGET...')
    .action((balancer: string, targets: string[], flags: Flags<ReadyFlags>) =>
      call('ready', balancer, flags, async (session, own) => {
        const { readyVerb } = await import('./verbs/look.js')
        return readyVerb(session, targets, own)
      }),
    )

  common(program.command('status'))
    .description('show every member as it is now')
    .argument(...BALANCER)
    .argument('[target...]', `${TARGETS[1]}; default: all`)
    .option('--expect <n>', 'fail if the target hits another number of members')
    .usage('[options] BALANCER [TARGET...]')
    .action((balancer: string, targets: string[], flags: Flags<StatusFlags>) =>
      call('status', balancer, flags, async (session, own) => {
        const { statusVerb } = await import('./verbs/look.js')
        return statusVerb(session, targets, own)
      }),
    )

  common(program.command('watch'))
    .description('watch drains that anybody began, without a change')
    .argument(...BALANCER)
    .argument(...TARGETS)
    .option('--until-idle', 'end once every member is idle')
    .option('--timeout <time>', 'end after this time, such as 2m (default: never)')
    .addOption(onUnreachable())
    .option(
      '--settle <time>',
      'how long nothing must arrive before a member counts as idle (default: 1s)',
    )
    .usage('[options] BALANCER TARGET...')
    .action((balancer: string, targets: string[], flags: Flags<WatchFlags>) =>
      call('watch', balancer, flags, async (session, own) => {
        const { watchVerb } = await import('./verbs/look.js')
        return watchVerb(session, targets, own)
      }),
    )

  common(rolling(policy(program.command('plan'))))
    .description('say what a drain would do, or a roll with --roll, and change nothing')
    .argument(...BALANCER)
    .argument(...TARGETS)
    .option('--expect <n>', 'refuse if the target hits another number of members')
    .option('--roll', 'plan a roll')
    .usage('[options] BALANCER TARGET...')
    .action((balancer: string, targets: string[], flags: Flags<PlanFlags>) =>
      call('plan', balancer, flags, async (session, own) => {
        const { planVerb } = await import('./verbs/look.js')
        return planVerb(session, targets, own)
      }),
    )

  common(rolling(policy(program.command('roll'))))
    .description('server by server: drain, COMMAND, ready, healthy')
    .argument(...BALANCER)
    .argument('<pool...>', 'a pool, or members')
    .option('--expect <n>', 'refuse if the target hits another number of members')
    .usage('[options] BALANCER POOL -- COMMAND...')
    .action((balancer: string, targets: string[], flags: Flags<RollFlags>, self: Command) => {
      if (command.length === 0)
        self.error('error: a roll needs COMMAND, which runs for each server: ... -- COMMAND')
      return call('roll', balancer, flags, async (session, own) => {
        const { rollVerb } = await import('./verbs/roll.js')
        return rollVerb(session, targets, command, own)
      })
    })

  common(program.command('resume'))
    .description('go on with a drain or a roll whose process is gone')
    .argument(...BALANCER)
    .argument('[ticket]', 'its id; default: the only one that is left over')
    .usage('[options] BALANCER [TICKET] [-- COMMAND...]')
    .action((balancer: string, id: string | undefined, flags: Flags<object>) =>
      call('resume', balancer, flags, async (session) => {
        const { resumeVerb } = await import('./verbs/tickets.js')
        return resumeVerb(session, id, command)
      }),
    )

  common(program.command('restore'))
    .description('undo what a drain changed, and nothing else')
    .argument(...BALANCER)
    .argument('[ticket]', 'its id; default: the only one that is left over')
    .usage('[options] BALANCER [TICKET]')
    .action((balancer: string, id: string | undefined, flags: Flags<object>) =>
      call('restore', balancer, flags, async (session) => {
        const { restoreVerb } = await import('./verbs/tickets.js')
        return restoreVerb(session, id)
      }),
    )

  common(program.command('orphans'))
    .description('list drains that no process continues')
    .argument(...BALANCER)
    .usage('[options] BALANCER')
    .action((balancer: string, flags: Flags<object>) =>
      call('orphans', balancer, flags, async (session) => {
        const { orphansVerb } = await import('./verbs/tickets.js')
        return orphansVerb(session)
      }),
    )

  return program
}

/** The page of `--report`, where it is asked for. */
async function withReport(
  file: string | undefined,
  verb: Verb,
  told: Reporting,
): Promise<Reporting> {
  if (file === undefined) return told
  const { reporting } = await import('./report/reporting.js')
  return reporting(file, verb, told)
}
