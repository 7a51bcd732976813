import { join } from 'node:path'
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import type { DrainableProvider, MemberRef } from 'drainable/provider'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { connect } from './dataplane.js'
import { engines, type Engine } from './engines.js'
import { Haproxy, type HaproxyOptions, until } from './haproxy.js'
import { Backend, request, type Answer } from './haproxy-traffic.js'

/** A real HAProxy, backends that answer when told to, the API's stand-in before it, and a provider. */
export interface Front extends AsyncDisposable {
  readonly haproxy: Haproxy
  readonly fake: DataplaneFake
  readonly lb: DrainableProvider
  readonly backends: Record<string, Backend>
  /** The next reload through the API is refused with this complaint: the process that serves stays. */
  refuseReload(complaint: string): void
  /** A request for one server, held by it until {@link Backend.release}. */
  hold(ref: MemberRef): Promise<{ readonly answer: Promise<Answer> }>
}

/** Which API stands before which HAProxy: as they were recorded. With series, one of each. */
export function pairs(
  ...series: readonly string[]
): readonly { readonly api: string; readonly engine: Engine }[] {
  const apis: Readonly<Record<string, readonly string[]>> = {
    '2.6': ['2.9'],
    '3.0': ['3.0'],
    '3.2': ['3.2', '3.4'],
    '3.4': ['3.4'],
  }
  return engines('haproxy', ...series).flatMap((engine) => {
    const [first = '3.4', ...more] = apis[engine.series] ?? []
    const chosen = series.length === 0 ? [first, ...more] : [first]
    return chosen.map((api) => ({ api, engine }))
  })
}

export const WEB = ['web1', 'web2', 'web3'] as const

/** Three servers with cookies, so that a test can say which one it wants. */
export const CONFIG: HaproxyOptions['config'] = (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  http-reuse never
  balance roundrobin
  cookie SRV insert indirect nocache
${WEB.map((name) => `  server ${name} 127.0.0.1:${port(name)} cookie ${name}`).join('\n')}
`

/** Starts all of it. */
export async function front(
  engine: Engine,
  api: string,
  options: Partial<HaproxyDataplaneOptions> = {},
  config = CONFIG,
  global = '',
  reloadDelay = 50,
): Promise<Front> {
  const haproxy = await Haproxy.start({ engine, config, global })
  const backends: Record<string, Backend> = {}
  for (const name of WEB) backends[name] = await Backend.start(haproxy.port(name), name)
  let complaint: string | undefined
  const reload = async (): Promise<void> => {
    const refused = complaint
    complaint = undefined
    if (refused !== undefined) throw new Error(refused)
    await haproxy.reload()
  }
  const fake = await startFake({
    front: {
      socket: haproxy.socket,
      config: join(haproxy.dir, 'haproxy.cfg'),
      reload,
    },
    version: api,
    reloadDelay,
  })
  const lb = connect(fake, options)
  return {
    haproxy,
    fake,
    lb,
    backends,
    refuseReload: (words) => {
      complaint = words
    },
    hold: async ({ member }) => {
      const backend = backends[member]!
      const before = backend.held
      const answer = request(haproxy.port('web'), '/hold', { cookie: member })
      await until(() => backend.held > before, `a request held by ${member}`)
      return { answer }
    },
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
      for (const backend of Object.values(backends)) await backend[Symbol.asyncDispose]()
      await haproxy[Symbol.asyncDispose]()
    },
  }
}
