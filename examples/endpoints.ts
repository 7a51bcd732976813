/**
 * What a controller would tell a balancer while pods and nodes come and go. The timelines in
 * `endpoints/` were recorded from a real Kubernetes API server with the upstream EndpointSlice
 * controller (`scripts/endpoint-timelines`); the balancer is the one in memory of `drainable/testing`.
 *
 * Every frame is a level, not an edge: all slices and all nodes as they are. The plan is made anew
 * from them and from what the balancer has, printed as a dry run would, and carried out: all drains at
 * the same time, while the loop goes on to what comes next.
 */
import { readFileSync } from 'node:fs'
import { carryOut, isDrainableError, type CarryOutReport } from 'drainable'
import {
  formatPlan,
  mapEndpoints,
  mapNodes,
  markByNodes,
  mergeSlices,
  planChanges,
  toDesired,
  type EndpointInput,
  type Plan,
} from 'drainable/endpoints'
import { callContext } from 'drainable/provider'
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

/** How often a loop plans again while nothing happens, in milliseconds. */
const AGAIN = 5_000

async function play(name: string, endpointsOf: (frame: Frame) => EndpointInput[]): Promise<void> {
  const url = new URL(`endpoints/${name}.json`, import.meta.url)
  const { title, recordedFrom, frames } = JSON.parse(readFileSync(url, 'utf8')) as Timeline
  console.log(`\n== ${title}\n   ${endpointsOf.name}; recorded from ${recordedFrom}`)

  const clock = fakeClock()
  const context = callContext({ clock })
  await using balancer = fakeProvider({ pools: { web: [] }, clock })
  const { capabilities } = await balancer.describe(context)
  const underWay: Promise<CarryOutReport>[] = []

  /** Plans anew from what is wanted and what is there, and begins what is to be done: it waits for none of it. */
  async function step(frame: Frame): Promise<Plan> {
    const desired = toDesired(mapEndpoints(endpointsOf(frame)), {
      pool: 'web',
      name: ({ endpoint, address }) => `k8s-${endpoint.targetRef?.name ?? address}`,
    })
    const plan = planChanges(desired, await balancer.observe('all', context), {
      pools: ['web'],
      owns: ({ ref }) => ref.member.startsWith('k8s-'),
      capabilities,
      idle: () => true, // carryOut proves it before it removes
    })
    underWay.push(carryOut(balancer, plan, { clock, timeout: '1m' }))
    return plan
  }

  for (const [i, frame] of frames.entries()) {
    console.log(`\n${String(frame.at).padStart(5)} ms, after: ${frame.after}`)
    console.log(formatPlan(await step(frame)))
    // One change can make the next one possible: a replacement that serves, a drain that ended.
    for (let left = (frames[i + 1]?.at ?? Infinity) - frame.at; left > 0; left -= AGAIN) {
      await clock.advance(Math.min(left, AGAIN))
      if (left <= AGAIN) break
      const plan = await step(frame)
      if (plan.changes.length === 0) {
        if (left === Infinity) break
        continue
      }
      console.log(`   ... and ${formatPlan(plan)}`)
    }
  }
  for (const { steps } of await clock.runUntil(Promise.all(underWay))) {
    for (const { change, error } of steps) {
      // What a later step took over is that one's to tell.
      if (error === undefined || isDrainableError(error, 'DRAIN_OVERRULED')) continue
      console.log(`  ${change.ref.member}: ${error.message}`)
    }
  }
}

await play('rolling-update-slow-prestop', pods)
await play('single-replica', pods)
await play('readiness-flap', pods)
await play('node-deletion', pods)
await play('node-deletion', nodePorts)
await play('node-drain', pods)
await play('node-shutdown', pods)
await play('node-shutdown', nodePorts)
