import { EVERY_STATE, NO_LOGIN, NO_REFUSE_CHANGE, NO_WATCH } from './cases.js'

export const SKIPPED = {
  fake: { ...EVERY_STATE, ...NO_WATCH, ...NO_LOGIN },
  engine: { ...EVERY_STATE, ...NO_WATCH, ...NO_LOGIN, ...NO_REFUSE_CHANGE },
} as const

export const NO_HOOK = {
  secrets: 'the Runtime API has no login',
  stranger: 'the Runtime API has no login',
  refuseChange: 'a real HAProxy refuses nothing on demand; the fake does',
} as const
