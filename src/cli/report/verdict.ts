import { formatDuration } from '../../provider/duration.js'
import type { DrainReport, MemberReport, RollReport, ServerReport } from '../../provider/report.js'
import { describeEnd } from '../child.js'
import { EXIT, MEANING } from '../exit-code.js'
import type { Result } from '../result.js'

/** How something ended: a sign, words, and how bad it is. */
export interface Verdict {
  readonly tone: 'good' | 'warn' | 'bad'
  readonly text: string
}

/** The sign of a verdict, for those who see no colour. */
export const SIGN: Readonly<Record<Verdict['tone'], string>> = { good: '✓', warn: '!', bad: '✗' }

/** How the drain of a member ended. */
export function memberVerdict({ outcome, verifiedIdle, elapsed }: MemberReport): Verdict {
  const after = `after ${formatDuration(elapsed)}`
  switch (outcome) {
    case 'idle':
    case 'removed':
      return verifiedIdle
        ? { tone: 'good', text: `${outcome}, verified, ${after}` }
        : { tone: 'warn', text: `${outcome}, not verified, ${after}` }
    case 'restored':
      return { tone: 'good', text: `restored, ${formatDuration(elapsed)} after the drain began` }
    case 'terminated':
    case 'proceeded':
      return { tone: 'warn', text: `${outcome} ${after}` }
    default:
      return { tone: 'bad', text: `${outcome} ${after}` }
  }
}

/** How a server of a roll ended. */
export function serverVerdict({ outcome, attempts }: ServerReport): Verdict {
  const calls = attempts > 1 ? `, COMMAND ran ${attempts} times` : ''
  const tone = outcome === 'done' ? 'good' : outcome === 'failed' ? 'bad' : 'warn'
  return { tone, text: `${outcome}${calls}` }
}

/** How the command ended, in one sentence. */
export function resultVerdict(result: Result | undefined): Verdict {
  if (result === undefined)
    return { tone: 'bad', text: 'ended at once by a second signal: the end is not known' }
  const tone = toneOf(result.exitCode)
  if (result.error !== undefined) return { tone, text: result.error.message }
  const sentences = [
    ...('roll' in result ? [rollWords(result.roll)] : []),
    ...('report' in result ? [reportWords(result.report)] : []),
    ...('command' in result ? [`COMMAND ${describeEnd(result.command)}`] : []),
  ]
  return { tone, text: sentences.length === 0 ? meaning(result.exitCode) : sentences.join('; ') }
}

/** What an exit status means. */
export function meaning(exitCode: number): string {
  const [name] = Object.entries(EXIT).find(([, code]) => code === exitCode) ?? []
  return name === undefined ? 'no status of the table' : MEANING[name as keyof typeof EXIT]
}

function toneOf(exitCode: number): Verdict['tone'] {
  if (exitCode === EXIT.ok) return 'good'
  return exitCode === EXIT.unverified || exitCode === EXIT.cut ? 'warn' : 'bad'
}

function rollWords({ outcome, servers, elapsed }: RollReport): string {
  const done = servers.filter((server) => server.outcome === 'done').length
  return `roll ${outcome}: ${done} of ${servers.length} servers done after ${formatDuration(elapsed)}`
}

function reportWords(report: DrainReport | { readonly members: readonly object[] }): string {
  const { members } = report
  if (!('outcome' in report)) return `${members.length} made ready`
  const counts = new Map<string, number>()
  for (const { outcome, verifiedIdle } of report.members) {
    const isIdle = outcome === 'idle' || outcome === 'removed'
    const words = isIdle ? `${outcome}, ${verifiedIdle ? 'verified' : 'not verified'}` : outcome
    counts.set(words, (counts.get(words) ?? 0) + 1)
  }
  const words =
    counts.size === 1 && members.length === 1
      ? [...counts.keys()]
      : [...counts].map(([outcome, n]) => `${n} ${outcome}`)
  return `${words.length === 0 ? report.outcome : words.join('; ')} after ${formatDuration(report.elapsed)}`
}
