// Loading every entry patches no global, starts nothing, and lets the process end by itself.
import { readFileSync } from 'node:fs'

const look = () => ({
  globals: Object.getOwnPropertyNames(globalThis).sort(),
  builtins: [Object, Array, Promise, Map, Set, Error, Function, String, Number, Symbol].flatMap(
    (type) => [
      ...Object.getOwnPropertyNames(type.prototype ?? {}),
      ...Object.getOwnPropertyNames(type),
    ],
  ),
  listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
})
// Node makes some globals on first use: touched here, so that they are not counted as ours.
await import('node:process')
void globalThis.fetch
const before = look()
const entries = JSON.parse(readFileSync(new URL('entries.json', import.meta.url), 'utf8'))
for (const entry of entries) {
  if (entry !== 'drainable/envoy/grpc') await import(entry)
}
const after = look()
console.log(
  JSON.stringify(before) === JSON.stringify(after) ? 'quiet' : JSON.stringify({ before, after }),
)
