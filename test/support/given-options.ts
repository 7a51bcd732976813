/** A factory, what it needs, and the names of all options that may be left out. */
export type GivenOptions = [
  name: string,
  needed: Record<string, unknown>,
  optional: readonly string[],
  make: (options: never) => unknown,
]

/** What the adapters of management APIs need. */
export const LOGIN = { url: 'https://127.0.0.1:1', username: 'admin', password: 'secret' }
