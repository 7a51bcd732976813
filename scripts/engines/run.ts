import { execFile } from 'node:child_process'

export interface RunOptions {
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** In milliseconds. */
  readonly timeout?: number
}

/** Runs a program to its end and gives its standard output; a failure carries what it said. */
export function run(
  program: string,
  args: readonly string[],
  { cwd, env, timeout = 600_000 }: RunOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { cwd, env: { ...process.env, ...env }, timeout, maxBuffer: 64 << 20, encoding: 'utf8' },
      (error, stdout, stderr) => {
        if (error === null) {
          resolve(stdout)
          return
        }
        const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-12).join('\n')
        reject(
          new Error(`${program} ${args.slice(0, 3).join(' ')} failed: ${said}`, { cause: error }),
        )
      },
    )
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
