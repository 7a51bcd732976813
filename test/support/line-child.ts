import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A process of its own that says what happens, a line of JSON each. */
export interface LineChild<Line> extends AsyncDisposable {
  readonly said: readonly Line[]
  readonly closed: Promise<unknown>
  kill(signal: NodeJS.Signals): void
}

/** Starts a script of this folder on the sources, with its options as one argument. */
export function startLineChild<Line>(script: string, options: object): LineChild<Line> {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const source = fileURLToPath(new URL('../../scripts/source.mjs', import.meta.url))
  const child = spawn(process.execPath, ['--import', source, path, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const said: Line[] = []
  createInterface({ input: child.stdout }).on('line', (line) => said.push(JSON.parse(line) as Line))
  return {
    said,
    closed,
    kill: (signal) => void child.kill(signal),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await closed
    },
  }
}
