/** The command as `src/cli/main.ts` starts it, without an await outside of a function: a file that can be cached has none. */
import { homedir } from 'node:os'
import { processIo } from '../../src/cli/io.js'
import { run } from '../../src/cli/run.js'

void run(process.argv.slice(2), processIo(homedir())).then((code) => {
  process.exitCode = code
})
