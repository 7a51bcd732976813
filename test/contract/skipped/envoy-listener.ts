import { NO_GENTLE_MAINT, NO_LOGIN, NO_WATCH, ONE_STATE } from './cases.js'

export const SKIPPED = {
  fake: { ...ONE_STATE, ...NO_GENTLE_MAINT, ...NO_WATCH, ...NO_LOGIN },
} as const

export const NO_HOOK = {
  secrets: 'the admin API has no login',
  stranger: 'the admin API has no login',
} as const
