/**
 * Makes a value at its first use, and keeps it. Used for schemas: building all of them takes longer than the rest of
 * an import of the package, and a script needs few.
 */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
