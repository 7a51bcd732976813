import {
  NO_GENTLE_MAINT,
  NO_LOGIN,
  NO_LOSE_ANSWER,
  NO_REFUSE_CHANGE,
  NO_WATCH,
  ONE_STATE,
} from './cases.js'

const ANY = {
  ...ONE_STATE,
  ...NO_GENTLE_MAINT,
  ...NO_REFUSE_CHANGE,
  ...NO_LOGIN,
} as const

export const SKIPPED = {
  callback: { ...ANY, ...NO_WATCH },
  file: { ...ANY, ...NO_WATCH, ...NO_LOSE_ANSWER },
  served: { ...ANY, ...NO_LOSE_ANSWER },
} as const

export const NO_HOOK = {
  loseAnswer: 'a file that is renamed, or a set that the adapter serves itself, has no answer',
  refuseChange: 'a set is published whole, and Envoy refuses only one with a fault in it',
  secrets: 'the admin API and the sets have no login',
  stranger: 'the admin API and the sets have no login',
} as const
