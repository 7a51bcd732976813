import { flagOf } from '../verbs/policy.js'

/** Options whose names are no English words: where they stand, the option is meant. */
const NAMES =
  'onTimeout|escalateAfter|keepReady|onMinimum|onOverrule|onAbort|onUnreachable|ifUnsupported|maxUnavailable|maxFailed|onFailure|waitHealthy'
/** Options whose names are also words: only with a value. */
const WORDS = 'timeout|settle|hold|until|canary|group|pace'
const OPTION = new RegExp(
  String.raw`(?<!-)\b(?:onFailure\.)?(?:(${NAMES})\b(?:: (?:'([\w-]+)'|(\d+)|true\b|(false)\b))?|(${WORDS}): '([\w-]+)')`,
  'g',
)
const CALL = /^( *)(?:drain|ready|roll|plan|watch|restore|resumeDrain|resumeRoll)\(\): /
/** What a refused option begins with, after the call. */
const REFUSED = new RegExp(`^(?:${WORDS}|id|owner|seal)(?=: | is )`)

/** A call that a text of the library names as what to do next. */
const NEXT = /\b(?:(resume)(?:Drain|Roll)|(restore|ready|drain|roll|plan))\(\)(?!:)/g

/** A text of the library for a user of the command: `onMinimum: 'wait'` is `--on-minimum wait`. */
export function withFlags(text: string): string {
  const own = CALL.test(text) ? text.replace(CALL, '$1').replace(REFUSED, flagOf) : text
  return own
    .replace(NEXT, "'$1$2'")
    .replace(OPTION, (_, name = '', quoted = '', digits = '', not = '', word = '', value = '') => {
      const flag = flagOf(`${name}${word}`)
      if (not !== '') return flag.replace('--', '--no-')
      return [flag, `${quoted}${digits}${value}`].filter(Boolean).join(' ')
    })
}
