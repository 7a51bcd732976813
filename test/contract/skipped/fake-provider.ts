import {
  EVERY_STATE,
  IN_MEMORY,
  IN_MEMORY_NO_HOOK,
  NO_COUNTS,
  NO_DRAIN,
  NO_GENTLE_MAINT,
  NO_WATCH,
  ONE_STATE,
} from './cases.js'

const ANY = { ...NO_WATCH, ...IN_MEMORY } as const

export const SKIPPED = {
  'all that the contract has': { ...ANY, ...EVERY_STATE },
  'no maint': { ...ANY, ...ONE_STATE, ...NO_GENTLE_MAINT },
  'no drain, and a maint that cuts': { ...ANY, ...ONE_STATE, ...NO_GENTLE_MAINT, ...NO_DRAIN },
  'no terminate, remove or add': { ...ANY, ...EVERY_STATE },
  'states that survive a reload': { ...ANY, ...EVERY_STATE },
  'no counts': { ...ANY, ...EVERY_STATE, ...NO_COUNTS },
} as const

export const NO_HOOK = IN_MEMORY_NO_HOOK
