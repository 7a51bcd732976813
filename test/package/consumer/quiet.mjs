// Loading every entry patches no global, starts nothing, and lets the process end by itself.
import { readFileSync } from 'node:fs'

const builtins = [Object, Array, Promise, Map, Set, Error, Function, String, Number, Symbol]
const look = () =>
  new Set([
    ...Object.getOwnPropertyNames(globalThis),
    ...builtins.flatMap((type) =>
      [type, type.prototype].flatMap((item) =>
        Object.getOwnPropertyNames(item).map((name) => `${type.name}: ${name}`),
      ),
    ),
    ...process.eventNames().map((name) => `on ${String(name)}: ${process.listenerCount(name)}`),
  ])

const before = look()
const entries = JSON.parse(readFileSync(new URL('entries.json', import.meta.url), 'utf8'))
for (const entry of entries) {
  // gRPC is the user's own choice, and looks at the environment when it is loaded.
  if (entry !== 'drainable/envoy/grpc') await import(entry)
}
// zod keeps two globals of its own, under its own name.
const added = [...look()].filter((name) => !before.has(name) && !name.startsWith('__zod_'))
console.log(added.length === 0 ? 'quiet' : `added: ${added.join(', ')}`)
