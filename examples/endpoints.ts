/**
 * What a controller would tell a balancer while pods and nodes come and go. The timelines in
 * `endpoints/` were recorded from a real Kubernetes API server with the upstream EndpointSlice
 * controller (`scripts/endpoint-timelines`); the balancer is the one in memory of `drainable/testing`.
 *
 * Every frame is a level, not an edge: all slices and all nodes as they are. The plan is made anew
 * from them and from what the balancer has, printed as a dry run would, and carried out.
 */
import { readFileSync } from 'node:fs'
import { drain } from 'drainable'
import {
  formatPlan,
  mapEndpoints,
  mapNodes,
  markByNodes,
  mergeSlices,
  planChanges,
  toDesired,
  type EndpointInput,
} from 'drainable/endpoints'
import { fakeClock, fakeProvider } from 'drainable/testing'

interface Frame {
  readonly at: number
  readonly after: string
  readonly slices: readonly unknown[]
  readonly nodes: readonly unknown[]
}

interface Timeline {
  readonly recordedFrom: string
  readonly title: string
  readonly frames: readonly Frame[]
}

/** The pods behind the Service; those on a node that is about to go leave before it does. */
function pods({ slices, nodes }: Frame): EndpointInput[] {
  return markByNodes(mergeSlices(slices, { port: 'http' }), nodes)
}

/** The same Service by its node port, under `externalTrafficPolicy: Local`. */
function nodePorts({ slices, nodes }: Frame): EndpointInput[] {
  return mapNodes(nodes, { ports: [30_080], local: mergeSlices(slices, { port: 'http' }) })
}

async function play(name: string, endpointsOf: (frame: Frame) => EndpointInput[]): Promise<void> {
  const url = new URL(`endpoints/${name}.json`, import.meta.url)
  const { title, recordedFrom, frames } = JSON.parse(readFileSync(url, 'utf8')) as Timeline
  console.log(`\n== ${title}\n   ${endpointsOf.name}; recorded from ${recordedFrom}`)

  const clock = fakeClock()
  const context = { signal: new AbortController().signal, clock }
  await using balancer = fakeProvider({ pools: { web: [] } })
  const { capabilities } = await balancer.describe(context)
  const idle = new Set<string>()

  for (const frame of frames) {
    console.log(`\n${String(frame.at).padStart(5)} ms, after: ${frame.after}`)
    const desired = toDesired(mapEndpoints(endpointsOf(frame)), {
      pool: 'web',
      name: ({ endpoint, address }) => endpoint.targetRef?.name ?? address,
    })
    // One change can make the next one possible: a replacement that serves, a drain that ended.
    for (let round = 0; round < 4; round++) {
      const plan = planChanges(desired, await balancer.observe('all', context), {
        pools: ['web'],
        owns: () => true, // nobody else has members in this pool
        capabilities,
        idle: ({ ref }) => idle.has(ref.member),
      })
      if (round === 0 || plan.changes.length > 0) console.log(formatPlan(plan))
      if (plan.changes.length === 0) break
      await balancer.apply(plan.changes, context)

      // A hold is only the beginning of a drain: nothing is removed before a report says idle.
      for (const change of plan.changes) {
        if (change.kind !== 'remove') idle.delete(change.ref.member)
        if (change.kind !== 'hold') continue
        const report = await clock.runUntil(drain(balancer, change.ref, { clock, hold: change.to }))
        for (const one of report.members) if (one.verifiedIdle) idle.add(one.ref.member)
      }
    }
  }
}

await play('rolling-update-slow-prestop', pods)
await play('single-replica', pods)
await play('readiness-flap', pods)
await play('node-deletion', pods)
await play('node-deletion', nodePorts)
