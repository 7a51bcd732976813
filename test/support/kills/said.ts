import { writeSync } from 'node:fs'
import type { Said } from './wire.js'

/** Says something to the parent, and returns when it can't be lost any more. */
export function say(said: Said): void {
  const bytes = Buffer.from(`${JSON.stringify(said)}\n`)
  for (let sent = 0; sent < bytes.length;) sent += writeSync(1, bytes, sent)
}
