#!/usr/bin/env node
import { tooOld } from './node-version.js'

// Nothing else is imported at once: an older Node may not be able to read it.
const refused = tooOld(process.versions.node)
if (refused === undefined) {
  const { homedir } = await import('node:os')
  const { processIo } = await import('./io.js')
  const { run } = await import('./run.js')
  process.exitCode = await run(process.argv.slice(2), processIo(homedir()))
} else {
  console.error(refused)
  process.exitCode = 2
}
