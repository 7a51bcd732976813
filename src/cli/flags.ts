import { Option, type Command } from 'commander'
import { EXIT, MEANING } from './exit-code.js'

/** The verbs in which something happens over time. */
const WITH_TIMELINE = ['drain', 'ready', 'watch', 'roll', 'resume', 'restore']

/** The options of every verb. */
export function common(verb: Command): Command {
  if (WITH_TIMELINE.includes(verb.name()))
    verb.option('--report <file>', 'write the timeline as a page (.html)')
  return verb
    .option('--config <file>', 'balancers by name, with their users, password files and CAs')
    .option('--username <user>', 'user of the API; or DRAINABLE_USERNAME')
    .option(
      '--password-file <file>',
      'its password; or DRAINABLE_PASSWORD, DRAINABLE_PASSWORD_FILE',
    )
    .option('--ca <file>', 'PEM file of the authorities of the certificate')
    .option('--insecure', 'accept any certificate')
    .option('--tickets <folder>', 'where tickets are kept; or DRAINABLE_TICKETS')
    .option('--no-tickets', 'keep none: a crash leaves nothing to resume or restore')
    .addOption(new Option('--json', 'one JSON document on stdout').conflicts('jsonl'))
    .addOption(new Option('--jsonl', 'one JSON object a line: events, then the document'))
}

/** The options of a drain. Their values are checked by the library. */
export function policy(verb: Command): Command {
  const oneOf = (flag: string, words: string, values: readonly string[]): Option =>
    new Option(`${flag} <what>`, words).choices(values)
  return verb
    .addOption(
      oneOf('--until', 'whether to remove what is idle (default: idle)', ['idle', 'removed']),
    )
    .option('--timeout <time>', 'deadline, such as 30s, 2m or never (default: 2m)')
    .addOption(
      oneOf(
        '--on-timeout',
        `what to do with work left then (${TIMEOUT_DEFAULT[verb.name()] ?? LEAVES})`,
        timeoutChoices(verb.name()),
      ),
    )
    .addOption(oneOf('--hold', 'state to hold the members in (default: drain)', ['drain', 'maint']))
    .option('--escalate-after <time>', 'raise from drain to maint after this time (default: off)')
    .option('--settle <time>', 'how long nothing must arrive (default: 1s)')
    .option(
      '--seal',
      'raise an idle member to maint, which keeps persistent clients out (default where maint cuts nothing)',
    )
    .option('--no-seal', 'leave an idle member in the state of --hold')
    .option('--keep-ready <n>', 'serving members that each pool must keep (default: 1)')
    .addOption(oneOf('--on-minimum', 'what to do below that (default: fail)', ['fail', 'wait']))
    .addOption(
      oneOf('--on-overrule', 'when another client sets another state (default: fail)', [
        'fail',
        'reapply',
      ]),
    )
    .addOption(
      oneOf(
        '--on-abort',
        'when it is ended by a signal (default: leave, which leaves it drained)',
        ['leave', 'restore'],
      ),
    )
    .addOption(onUnreachable())
    .addOption(
      oneOf('--if-unsupported', 'if the product can not do a part (default: fail)', [
        'fail',
        'proceed',
      ]),
    )
    .option('--id <id>', "the ticket's id")
    .option('--owner <name>', 'who drains, for orphans; no secret')
    .option('--pace <time>', 'shortest pause between two looks (default: by how long one takes)')
}

const LEAVES = 'default: fail, which leaves it drained'
const POSTPONES = 'postpone, which tries it once more after all others'
const TIMEOUT_DEFAULT: Readonly<Record<string, string>> = {
  roll: `default: ${POSTPONES}`,
  plan: `${LEAVES}; with --roll ${POSTPONES}`,
}

function timeoutChoices(verb: string): readonly string[] {
  const all = ['fail', 'terminate', 'proceed', 'remove']
  return verb === 'drain' ? all : [...all, 'postpone']
}

/** The options of a roll beside those of a drain. */
export function rolling(verb: Command): Command {
  return verb
    .option('--canary <n>', 'servers that go first and must be healthy (default: 0)')
    .option('--max-unavailable <n>', 'servers that can be out at once: 2 or 10% (default: 1)')
    .addOption(
      new Option(
        '--group <what>',
        'which members are one server: those of an address, or each for itself (default: address)',
      ).choices(['address', 'ref']),
    )
    .addOption(
      new Option(
        '--on-failure <what>',
        'whether other servers still begin after a failed one (default: stop)',
      ).choices(['stop', 'continue']),
    )
    .option('--max-failed <n>', 'go on until more than this many have failed')
    .addOption(waitHealthy())
    .addOption(new Option('--no-wait-healthy', 'do not wait for a check (default: wait 30s)'))
}

/** What to do with a balancer that is away. */
export function onUnreachable(): Option {
  const words =
    'a balancer that can not be read at first: refuse, or wait until the deadline (default: fail)'
  return new Option('--on-unreachable <what>', words).choices(['fail', 'wait'])
}

/** Whether a check is waited for when a member is made ready. */
export function waitHealthy(): Option {
  return new Option(
    '--wait-healthy [time]',
    'wait for a passed check when it is made ready, 30s or that long',
  )
}

/** What stands below the help: examples, and what each exit status means. */
export function afterHelp(): string {
  const rows = Object.entries(EXIT).map(
    ([name, code]) => `  ${String(code).padStart(3)}  ${MEANING[name as keyof typeof EXIT]}`,
  )
  return `
Examples:
  drainable status haproxy:/run/haproxy/admin.sock
  drainable drain haproxy:/run/haproxy/admin.sock web/web1 -- systemctl restart app
  drainable roll haproxy:/run/haproxy/admin.sock web -- ./deploy.sh

A balancer: haproxy:/run/haproxy/admin.sock, dataplane+https://HOST:5555, bigip+https://HOST,
citrix+https://HOST, envoy+file:/FILE?admin=URL, envoy-listener+http://HOST:9901. Secrets come from the
environment or a file.

Exit status:
${rows.join('\n')}`
}
