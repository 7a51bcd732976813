/** A cluster of 500 Services with 20 endpoints each, in a process of its own, with 100 changes a second. */
import { once } from 'node:events'
import { FakeKube } from '../../../test/support/kube-api/server.ts'
import { service, SERVICES, slice, SLICES } from '../../../test/support/kube-api/objects.ts'

const CHANGES = 100
/** Each endpoint leaves for that long, then comes back, in milliseconds. */
const AWAY = 2_000

const kube = await FakeKube.start()
/** By Service: the addresses of its endpoints, and their port. */
const [services] = (await once(process, 'message')) as [{ port: number; addresses: string[] }[]]
const leaving = services.map(() => new Set<number>())

function put(s: number): void {
  const { port = 0, addresses = [] } = services[s] ?? {}
  const all = addresses.map((address, e) => {
    const conditions = leaving[s]?.has(e) === true ? 'FTT' : 'TTF'
    return [address, conditions] as const
  })
  kube.put(SLICES, slice(Object.fromEntries(all), { of: `svc${s}`, port }))
}

for (const s of services.keys()) {
  kube.put(SERVICES, service(`svc${s}`))
  put(s)
}
process.send?.({ port: kube.port })

let next = 0
function tick(): void {
  // Half of the changes let an endpoint leave, the other half bring back those that left before.
  for (let i = 0; i < CHANGES / 20; i += 1) {
    const n = (next += 1)
    const s = (n * 7_919) % services.length
    const e = n % (services[s]?.addresses.length ?? 1)
    const set = leaving[s]
    if (set === undefined || set.has(e)) continue
    set.add(e)
    process.send?.({ left: `svc${s}-${e}`, at: Date.now() })
    put(s)
    setTimeout(() => {
      set.delete(e)
      put(s)
    }, AWAY)
  }
}

process.once('message', () => setInterval(tick, 100))
process.once('disconnect', () => process.exit())
process.on('error', () => process.exit())
