/**
 * What is made at its first use, and kept. Schemas are: to build all of them takes longer than anything else that an
 * import of the package does, and a script needs few.
 */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
