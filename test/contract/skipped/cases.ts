/** Cases of the contract suite that are skipped for more than one provider, each with the reason that the suite gives. */

/** The cases that one setup skips, by name. */
export type Skipped = Readonly<Record<string, string>>

/** What a provider's file beside this one says. */
export interface SkipList {
  /** By setup: all that is skipped there. */
  readonly SKIPPED: Readonly<Record<string, Skipped>>
  /** Why the harness of that provider has not a hook, for each hook that one of its setups lacks. */
  readonly NO_HOOK: Readonly<Record<string, string>>
}

export const EVERY_STATE = {
  'refuses a state that is not on its ladder, and changes nothing': 'its ladder has every state',
} as const

export const ONE_STATE = {
  'restores step by step': 'its ladder has one state beyond ready',
} as const

const GENTLE = 'keeps counting, and keeps the work, under a maint that it calls gentle'
export const NO_GENTLE_MAINT = { [GENTLE]: 'it calls no maint gentle' } as const
export const NO_COUNTS = { [GENTLE]: 'it counts nothing' } as const

export const NO_DRAIN = {
  'keeps counting, and keeps the work, under drain': 'its ladder has no drain',
  'keeps counting for a member through its restore': 'its ladder has no drain',
} as const

export const NO_ARRIVALS = {
  'shows by its arrivals that work came and went': 'its scopes tell no arrivals',
} as const

export const NO_WATCH = {
  'pushes snapshots where it can push, and stops when told to': 'it has no watch',
} as const

export const NO_LOSE_ANSWER = {
  'does not report a completed change as refused': 'the harness has no loseAnswer',
} as const

export const NO_REFUSE_CHANGE = {
  'does not report a half-made change as refused': 'the harness has no refuseChange',
} as const

export const NO_RELOAD = {
  'keeps or loses states at a reload as it says, and shows the reload': 'the harness has no reload',
} as const

export const NO_LOGIN = {
  'shows no password, key or token, whatever goes wrong': 'the harness has no secrets',
  'does not send a refused password again and again': 'the harness has no stranger',
} as const

/** A balancer in memory: no connection, no answer that could be cut, no login. */
export const IN_MEMORY = {
  ...NO_REFUSE_CHANGE,
  ...NO_LOGIN,
  'leaves no connection behind, wherever a call is given up': 'the harness has no sockets',
  'does not read less from a truncated or malformed answer': 'the harness has no damage',
  'waits by the clock it is given, also for an answer': 'the harness has no damage',
  'tries again by the clock it is given': 'the harness has no damage',
} as const

export const IN_MEMORY_NO_HOOK = {
  refuseChange: 'a change is one step in memory: no part of it can be left',
  secrets: 'it needs no login',
  stranger: 'it needs no login',
  sockets: 'it opens no connection',
  damage: 'its answers are values, which nothing can cut',
} as const
