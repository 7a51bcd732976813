import type { Capabilities } from './contract.js'

/** The words of capabilities, by their fields: the gate takes no others, and neither does the contract suite. */
export const CAPABILITY_WORDS = {
  maint: ['gentle', 'cuts', 'unknown', 'none'],
  counts: ['requests', 'connections', 'none'],
  removal: ['keeps', 'cuts', 'refuses', 'unknown'],
} as const satisfies { readonly [K in keyof Capabilities]?: readonly Capabilities[K][] }
