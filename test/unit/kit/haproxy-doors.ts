/** One HAProxy on its fake, through each of its two adapters. */
import type { DrainableProvider } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake as startRuntime } from 'drainable/testing/haproxy-runtime'

interface Door extends AsyncDisposable {
  readonly lb: DrainableProvider & AsyncDisposable
  readonly fake: Fake
}

/** What both fakes can do. */
interface Fake {
  occupy(ref: { readonly pool: string; readonly member: string }): Promise<() => Promise<void>>
  reload(): Promise<unknown>
  close(): Promise<void>
}

type Pools = Readonly<
  Record<string, readonly (string | { name: string; check?: boolean; track?: string })[]>
>

async function runtime(pools: Pools): Promise<Door> {
  const fake = await startRuntime({ pools, master: true })
  return doorOf(haproxyRuntime({ socket: fake.socket, master: fake.master }), fake)
}

async function dataplane(pools: Pools): Promise<Door> {
  const fake = await startDataplane({ pools })
  const { url } = fake
  const login = { url, username: 'admin', password: 'secret' }
  return doorOf(haproxyDataplane({ ...login, oldWorkers: 'accept' }), fake)
}

function doorOf(lb: Door['lb'], fake: Fake): Door {
  return {
    lb,
    fake,
    async [Symbol.asyncDispose]() {
      await lb[Symbol.asyncDispose]()
      await fake.close()
    },
  }
}

export const DOORS = [
  ['Runtime API', runtime],
  ['Data Plane API', dataplane],
] as const
