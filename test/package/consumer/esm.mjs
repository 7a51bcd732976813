// Prints the names that each entry exports.
import { readFileSync } from 'node:fs'

const entries = JSON.parse(readFileSync(new URL('entries.json', import.meta.url), 'utf8'))
const names = {}
for (const entry of entries) {
  names[entry] = Object.keys(await import(entry)).sort()
}
console.log(JSON.stringify(names))
