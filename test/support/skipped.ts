/** What a machine lacks to run all tests: an error under `CI`, said out loud and skipped elsewhere. */

export function isCi(): boolean {
  const value = process.env['CI']
  return value !== undefined && value !== '' && value !== 'false'
}

const said = new Set<string>()

/** One line on standard error, once in each test file. */
export function saySkipped(words: string): void {
  if (said.has(words)) return
  said.add(words)
  process.stderr.write(`SKIPPED: ${words}\n`)
}

/** Installs what tests need; `undefined` where it can't be had, for instance without a network. */
export async function installOrSkip<T>(
  what: string,
  install: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await install()
  } catch (error) {
    if (isCi()) throw error
    saySkipped(`no ${what} to test with: ${String(error)}`)
    return undefined
  }
}
