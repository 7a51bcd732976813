/** Waits for something truthy, with a deadline. */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string,
  within = 15_000,
): Promise<NonNullable<T>> {
  const end = performance.now() + within
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false && found !== '' && found !== 0) {
      return found
    }
    if (performance.now() > end) throw new Error(`no ${what} within ${within} ms`)
    await delay(10)
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
