#!/usr/bin/env node
import { tooOld } from './node-version.js'

// Nothing else is imported at once: an older Node may not be able to read it.
const refused = tooOld(process.versions.node)
if (refused === undefined) {
  const { start } = await import('./start.js')
  process.exitCode = await start()
} else {
  console.error(refused)
  process.exitCode = 2
}
