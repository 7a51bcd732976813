import { flagOf } from '../verbs/policy.js'

/** Options whose names are no English words: where they stand, the option is meant. */
const NAMES =
  'onTimeout|escalateAfter|keepReady|onMinimum|onOverrule|onAbort|ifUnsupported|maxUnavailable|maxFailed|onFailure|waitHealthy'
/** Options whose names are also words: only with a value. */
const WORDS = 'timeout|settle|hold|until|canary|group|pace'
const OPTION = new RegExp(
  String.raw`\b(?:(${NAMES})\b(?:: (?:'([\w-]+)'|(\d+)))?|(${WORDS}): '([\w-]+)')`,
  'g',
)
const CALL = /^(?:drain|ready|roll|plan|watch|restore|resumeDrain|resumeRoll)\(\): /

/** A text of the library for a user of the command: `onMinimum: 'wait'` is `--on-minimum wait`. */
export function withFlags(text: string): string {
  return text
    .replace(CALL, '')
    .replace(
      OPTION,
      (_, name?: string, quoted?: string, digits?: string, word?: string, value?: string) =>
        [flagOf(name ?? word ?? ''), quoted ?? digits ?? value].filter(Boolean).join(' '),
    )
}
