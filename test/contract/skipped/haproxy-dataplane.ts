import { EVERY_STATE, NO_GENTLE_MAINT, NO_REFUSE_CHANGE, NO_WATCH } from './cases.js'

export const SKIPPED = {
  fake: { ...EVERY_STATE, ...NO_WATCH },
  maintCuts: { ...EVERY_STATE, ...NO_WATCH, ...NO_GENTLE_MAINT },
  durable: { ...EVERY_STATE, ...NO_WATCH, ...NO_REFUSE_CHANGE },
  engine: { ...EVERY_STATE, ...NO_WATCH },
} as const

export const NO_HOOK = {
  refuseChange: 'a durable drain puts back what another opens: the case could not begin again',
} as const
