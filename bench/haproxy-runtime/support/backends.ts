/** The servers behind HAProxy, in a process of their own. */
import { until } from '../../../test/support/haproxy.js'
import { Backend } from '../../../test/support/haproxy-traffic.js'
import { now, serve } from './child.js'

const backends = new Map<string, Backend>()

function backend(name: string): Backend {
  const found = backends.get(name)
  if (found === undefined) throw new Error(`no backend ${name}`)
  return found
}

export const calls = {
  async start(name: string, port: number): Promise<void> {
    backends.set(name, await Backend.start(port, name))
  },
  /** Resolves once so many are in hand. */
  async busy(name: string, count: number): Promise<void> {
    await until(() => backend(name).active === count, `${count} in flight at ${name}`)
  },
  active: (name: string) => backend(name).active,
  total: (name: string) => backend(name).total,
  /** Ends all that is held; resolves with the moment of the last byte. */
  async release(name: string): Promise<number> {
    const { active } = backend(name)
    backend(name).release()
    await until(() => backend(name).active === 0, `${active} answers of ${name} end`)
    return backend(name).lastByteAt + now() - performance.now()
  },
}

export type Backends = typeof calls

serve(calls)
