import { EVERY_STATE, NO_WATCH } from './cases.js'

export const SKIPPED = { fake: { ...EVERY_STATE, ...NO_WATCH } } as const

export const NO_HOOK = {} as const
