import { execFile } from 'node:child_process'

export interface RunOptions {
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** In milliseconds: how long it may take in all. */
  readonly timeout?: number
  /** In milliseconds: how long it may say nothing. Default: as long as it may take. */
  readonly silence?: number
}

/**
 * Runs a program to its end and gives its standard output; a failure carries what it said, and one of
 * time says what was waited for.
 */
export function run(
  program: string,
  args: readonly string[],
  { cwd, env, timeout = 600_000, silence = timeout }: RunOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    let gaveUp: string | undefined
    const child = execFile(
      program,
      args,
      { cwd, env: { ...process.env, ...env }, maxBuffer: 64 << 20, encoding: 'utf8' },
      (error, stdout, stderr) => {
        clearTimeout(whole)
        clearTimeout(quiet)
        if (error === null) {
          resolve(stdout)
          return
        }
        const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-12).join('\n')
        const what = [program, ...args.slice(0, 3)].join(' ')
        const signal = error.signal ? ` by ${error.signal}` : ''
        const how =
          gaveUp === undefined ? `failed${signal}` : `was given up: it ${gaveUp}; it said last`
        reject(new Error(`${what} ${how}: ${said || 'nothing'}`, { cause: error }))
      },
    )
    const giveUp = (why: string): void => {
      gaveUp ??= why
      child.kill()
    }
    const whole = setTimeout(giveUp, timeout, `did not end within ${timeout / 1_000} s`)
    const hush = (): NodeJS.Timeout =>
      setTimeout(giveUp, silence, `said nothing for ${silence / 1_000} s`)
    let quiet = hush()
    const heard = (): void => {
      clearTimeout(quiet)
      quiet = hush()
    }
    child.stdout?.on('data', heard)
    child.stderr?.on('data', heard)
  })
}

/** Whether a program of this name can be found. */
export async function hasProgram(name: string): Promise<boolean> {
  try {
    await run('sh', ['-c', `command -v ${name}`])
    return true
  } catch {
    return false
  }
}
