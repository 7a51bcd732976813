/**
 * A controller that keeps the servers of a HAProxy as the EndpointSlices of a Service and the Nodes say: the program
 * to copy. It watches with `@kubernetes/client-node` 2, it never takes a list that is not whole for the truth, and it
 * leaves the rest to `reconcile`.
 *
 *     HAPROXY_SOCKET=/run/haproxy/admin.sock SERVICE=shop/web PORT=http POOL=web node controller.ts
 *
 * The cluster is the one of `KUBECONFIG`, or the one it runs in. Without `HAPROXY_SOCKET` it shows itself on stand-ins.
 */
import { once } from 'node:events'
import { KubeConfig } from '@kubernetes/client-node'
import { fileTickets, reconcile, select } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { follow } from './support/follow.ts'
import { kubernetesSources } from './support/kubernetes.ts'
import { readyNode, StandIn, twoPods } from './support/stand-in.ts'

/** One line of JSON for each thing that happened. */
function say(event: string, more: object = {}): void {
  console.log(JSON.stringify({ at: new Date().toISOString(), event, ...more }))
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function run(socket: string, env: NodeJS.ProcessEnv): Promise<void> {
  const [namespace = '', service = ''] = (env['SERVICE'] ?? 'default/web').split('/')
  const {
    POOL: pool = service,
    PORT: port = 'http',
    TICKETS: tickets,
    HAPROXY_MASTER: master,
  } = env
  const config = new KubeConfig()
  config.loadFromDefault()
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort())

  await using lb = haproxyRuntime({ socket, master })
  await using loop = reconcile(lb, {
    pools: [pool],
    owns: ({ ref }) => ref.member.startsWith('pod-'),
    tickets: tickets === undefined ? undefined : fileTickets(tickets),
    timeout: '2m',
    signal: stop.signal,
  })
  loop.on('fault', (error) => say('fault', { code: error.code, message: error.message }))
  loop.on('status', (members) => {
    const rows = members.map(({ ref, phase, want, held }) => [ref.member, phase, want, held])
    say('status', { members: rows })
  })
  const watches = follow(loop, kubernetesSources(config, { namespace, service }), {
    pool,
    port,
    set: (endpoints) => say('set', { endpoints }),
    failed: (error) => say('watch failed', { message: words(error) }),
  })
  await loop.done
  await watches[Symbol.asyncDispose]()
}

async function show(): Promise<void> {
  await using haproxy = await startFake({
    pools: {
      web: [
        { name: 'pod-1', address: '10.0.0.1', port: 8080 },
        { name: 'pod-2', address: '10.0.0.2', port: 8080 },
      ],
    },
  })
  await using lb = haproxyRuntime({ socket: haproxy.socket })
  const slices = new StandIn(twoPods())
  const nodes = new StandIn(readyNode)
  await using loop = reconcile(lb, {
    pools: ['web'],
    owns: ({ ref }) => ref.member.startsWith('pod-'),
    timeout: '2m',
    settle: '50ms',
  })
  loop.on('fault', (error) => say('fault', { message: error.message }))
  const sets = new EventTarget()
  const watches = follow(
    loop,
    { slices: slices.make, nodes: nodes.make },
    {
      pool: 'web',
      port: 'http',
      set: () => sets.dispatchEvent(new Event('set')),
      failed: (error) => say('watch failed', { message: words(error) }),
    },
  )
  const settled = async (what: string): Promise<void> => {
    await loop.settled()
    const readings = await select(lb, { pool: 'web' })
    const states = readings.map((one) => `${one.ref.member} ${one.present ? one.own : 'gone'}`)
    console.log(`${what}: ${states.join(', ')}`)
  }
  const put = async (...objects: readonly unknown[]): Promise<void> => {
    const seen = once(sets, 'set')
    slices.put(...objects)
    await seen
  }
  await once(sets, 'set')
  await settled('both pods serve')
  await put(twoPods('10.0.0.2'))
  await settled('the second pod is leaving')
  slices.fail()
  slices.put()
  await settled('the watch has failed, and its list is not usable')
  await put(twoPods())
  await settled('the watch was restarted, and both serve')
  await watches[Symbol.asyncDispose]()
}

const socket = process.env['HAPROXY_SOCKET']
await (socket === undefined ? show() : run(socket, process.env))
