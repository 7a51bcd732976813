/** A balancer in memory with 10,000 endpoints in 500 Services, which tells what its own looks take. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { callContext } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'

export const SERVICES = 500
export const EACH = 20

setFlagsFromString('--expose-gc')
/** Collects garbage at once. */
export const collect = runInNewContext('gc') as () => void

export const names = Array.from({ length: SERVICES }, (_, s) => `svc${s}`)

/** The endpoints of a Service. */
export const members = (name: string): string[] =>
  Array.from({ length: EACH }, (_, e) => `${name}-${e}`)

export const lb = fakeProvider({
  pools: Object.fromEntries(names.map((name) => [name, members(name)])),
})

/** Where each endpoint is. */
export const places = new Map(
  (await lb.observe('all', callContext())).readings.map((one) => [
    one.ref.member,
    one.present ? { address: one.address, port: one.port } : {},
  ]),
)

/** How many looks there were, and what they took, in milliseconds. */
export const looks = { count: 0, took: 0 }

const observe = lb.observe.bind(lb)
// It notes every call, which is not what is measured.
lb.observe = (refs, ctx) => {
  ;(lb.requests as unknown[]).length = 0
  const from = performance.now()
  const snapshot = observe(refs, ctx)
  looks.took += performance.now() - from
  looks.count += 1
  return snapshot
}

/** Takes the endpoints that are held by now out of the map, and notes how long each had been asked for, in milliseconds. */
export function noteHolds(asked: Map<string, number>, waits: number[], now: () => number): void {
  for (const [member, at] of asked) {
    const pool = member.slice(0, member.lastIndexOf('-'))
    if (lb.state({ pool, member }) === 'ready') continue
    waits.push(now() - at)
    asked.delete(member)
  }
}
