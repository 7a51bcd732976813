import { spawn } from 'node:child_process'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'

/** How COMMAND ended. */
export interface Ended {
  /** Its exit status; null if a signal ended it. */
  readonly status: number | null
  /** The signal that ended it. */
  readonly signal: NodeJS.Signals | null
}

/** How COMMAND is run. */
export interface ChildOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether its output goes to stderr: stdout holds a document then. */
  readonly quietStdout: boolean
  /** When it fires, COMMAND gets a SIGTERM, and is waited for. */
  readonly signal: AbortSignal
}

/**
 * Runs COMMAND and waits for its end. It has the terminal: input, and output as it is.
 *
 * @throws `ACTION_FAILED` if it can't be started
 */
export async function runCommand(
  [file = '', ...args]: readonly string[],
  { env, quietStdout, signal }: ChildOptions,
): Promise<Ended> {
  const child = spawn(file, args, {
    env,
    stdio: ['inherit', quietStdout ? 2 : 'inherit', 'inherit'],
  })
  const stop = (): void => {
    child.kill('SIGTERM')
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await new Promise<Ended>((resolve, reject) => {
      child.once('error', (error) => {
        reject(
          new DrainableError(
            'ACTION_FAILED',
            `COMMAND: '${quote(file, 80)}' can not be run (${(error as NodeJS.ErrnoException).code ?? error.message}): the member stays drained; 'ready' opens it`,
            { cause: error },
          ),
        )
      })
      child.once('exit', (status, by) => resolve({ status, signal: by }))
    })
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Whether it ended well. */
export function endedWell({ status }: Ended): boolean {
  return status === 0
}

/** How it ended, in words. */
export function describeEnd({ status, signal }: Ended): string {
  return signal === null ? `exited with ${status ?? 1}` : `was ended by ${signal}`
}
