import { EVERY_STATE, IN_MEMORY, IN_MEMORY_NO_HOOK, NO_WATCH } from './cases.js'

export const SKIPPED = { fake: { ...EVERY_STATE, ...NO_WATCH, ...IN_MEMORY } } as const

export const NO_HOOK = IN_MEMORY_NO_HOOK
