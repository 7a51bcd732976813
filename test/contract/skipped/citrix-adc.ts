import { EVERY_STATE, NO_GENTLE_MAINT, NO_WATCH } from './cases.js'

export const SKIPPED = {
  group: { ...EVERY_STATE, ...NO_WATCH, ...NO_GENTLE_MAINT },
  services: { ...EVERY_STATE, ...NO_WATCH, ...NO_GENTLE_MAINT },
  lasting: {
    ...EVERY_STATE,
    ...NO_WATCH,
    'cuts work where it can, and says so where it can not':
      'it can cut work, but not that of this member',
  },
} as const

export const NO_HOOK = {} as const
