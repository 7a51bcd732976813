/**
 * Test files of one kind share their processes, so a file that leaves something behind breaks another one, far away.
 * Loaded into every test process: fails the file that did it, and begins the next one as a new process would.
 */
import { setTimeout as turn } from 'node:timers/promises'
import { afterAll, beforeAll, vi } from 'vitest'

/** Where the library keeps what the runs of a process know of each other. */
const SHARED = ['balancers', 'left', 'coming', 'calls', 'rolls'].map((name) =>
  Symbol.for(`drainable.${name}.1`),
)
const [BALANCERS] = SHARED

function entries(key: symbol): readonly string[] {
  const map: unknown = Reflect.get(globalThis, key)
  return map instanceof Map ? [...map.keys()].map((name) => String(name).replace('\0', ' ')) : []
}

/** What of this process any file can see: listeners, variables, the clock and the network of Node itself. */
function surroundings(): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>([
    ['fake timers', vi.isFakeTimers()],
    ['the working directory', process.cwd()],
    ['fetch', globalThis.fetch],
    ['setTimeout', globalThis.setTimeout],
    ['performance.now', Reflect.get(performance, 'now')],
  ])
  for (const [name, value] of Object.entries(process.env)) found.set(`env ${name}`, value)
  for (const name of process.eventNames())
    found.set(`listeners of ${String(name)}`, process.listeners(name as 'exit').length)
  return found
}

/** Set by what a test loads for the first time, and the same for whoever comes later. */
const LOADED = /^listeners of (newListener|removeListener|exit|beforeExit|warning)$/

let before: ReadonlyMap<string, unknown> = new Map()

beforeAll(() => {
  before = surroundings()
})

/** What a closed provider held leaves with its next look: for so long it may take, in milliseconds. */
const PATIENCE = 5_000

afterAll(async () => {
  const deadline = performance.now() + PATIENCE
  while (entries(BALANCERS!).length > 0 && performance.now() < deadline) await turn(10)
  const drains = entries(BALANCERS!)
  for (const key of SHARED) Reflect.deleteProperty(globalThis, key)
  const after = surroundings()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => !LOADED.test(name) && before.get(name) !== after.get(name),
  )
  const left = [
    ...drains.map((name) => `a drain, undo or watch of ${name} (release it: \`await using\`)`),
    ...changed.map((name) => `${name} (changed, and not put back)`),
  ]
  if (left.length > 0) throw new Error(`this file leaves behind:\n  ${left.join('\n  ')}`)
})
