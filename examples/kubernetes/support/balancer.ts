/** The balancers that the environment names: one HAProxy, or several as one. */
import { combineProviders, type DrainableProvider } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'

type Balancer = DrainableProvider & AsyncDisposable

/** `HAPROXY=10.0.0.2:9999,10.0.0.3:9999`, and `HAPROXY_MASTER` with their master sockets in the same order. */
export function balancersOf(env: NodeJS.ProcessEnv): readonly (readonly [string, Balancer])[] {
  const list = (text = ''): string[] => text.split(',').filter((part) => part !== '')
  const masters = list(env['HAPROXY_MASTER'])
  const all = list(env['HAPROXY']).map((socket, i) => {
    const master = masters[i]
    // Its key in refs and tickets, which takes no colon and no slash: `10.0.0.2_9999`.
    const key = socket.replaceAll(/[^\w.-]+/g, '_').slice(-100)
    return [key, haproxyRuntime({ socket, master })] as const
  })
  if (all.length === 0) throw new Error('HAPROXY names no balancer: give one socket or more')
  return all
}

/** All of them as one. */
export function balancerOf(env: NodeJS.ProcessEnv): Balancer {
  const all = balancersOf(env)
  const [first] = all
  return first !== undefined && all.length === 1
    ? first[1]
    : combineProviders(Object.fromEntries(all))
}

/** One line of JSON for each thing that happened. */
export function say(event: string, more: object = {}): void {
  console.log(JSON.stringify({ at: new Date().toISOString(), event, ...more }))
}

/** Whether the program is to run; without a balancer it says what it needs. */
export function isSetUp(needs: string): boolean {
  if (process.env['HAPROXY'] !== undefined) return true
  console.log(`it needs a balancer and a cluster: ${needs}; see docs/kubernetes.md`)
  return false
}

/** Fires when the program is asked to end. */
export function untilAsked(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort())
  return stop.signal
}
