import {
  IN_MEMORY,
  IN_MEMORY_NO_HOOK,
  NO_COUNTS,
  NO_LOSE_ANSWER,
  NO_RELOAD,
  NO_WATCH,
  ONE_STATE,
} from './cases.js'

export const SKIPPED = {
  example: {
    ...ONE_STATE,
    ...NO_COUNTS,
    ...NO_WATCH,
    ...NO_RELOAD,
    ...NO_LOSE_ANSWER,
    ...IN_MEMORY,
  },
} as const

export const NO_HOOK = {
  ...IN_MEMORY_NO_HOOK,
  reload: 'a target group never starts again',
  loseAnswer: "the fake is the vendor's client, which repeats what it loses",
} as const
