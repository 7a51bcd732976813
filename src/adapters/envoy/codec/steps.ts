/** Work that can pause: it yields where it has taken a while, and returns what it comes to. */
export type Steps<T> = Generator<undefined, T>

/** All of it at once. */
export function whole<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
