/** docs/endpoint-conditions.md, from the code and from what Envoy did. */
import { readFileSync } from 'node:fs'
import type { PanicRecord, PanicRow } from './envoy-panic.ts'
import { pullTable, reasonTable, saidTable, table, unsaidTable } from './tables.ts'

function read(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}

function hostsText(hosts: PanicRow['hosts']): string {
  const counts = new Map<string, number>()
  for (const host of hosts) counts.set(host, (counts.get(host) ?? 0) + 1)
  return Array.from(counts, ([health, n]) => `${n} ${health}`).join(' + ')
}

function trafficText({ hosts, requests, refused }: PanicRow): string {
  if (requests.every((n) => n === 0)) return `none: ${refused} × 503`
  if (requests.every((n) => n > 0)) return `all ${hosts.length}: ${requests.join(', ')}`
  const used = new Set(hosts.filter((_, i) => (requests[i] ?? 0) > 0))
  return `${[...used].join(' and ')} only: ${requests.filter((n) => n > 0).join(', ')}`
}

function panicTable({ rows }: PanicRecord): string {
  return table(
    ['hosts', 'panic threshold', 'where the requests went', 'panics'],
    rows.map((row) => [hostsText(row.hosts), row.panic, trafficText(row), String(row.panics)]),
  )
}

/** The whole page. */
export function endpointConditionsPage(): string {
  const panic = read('envoy-panic.json') as PanicRecord
  return `<!-- Written by scripts/endpoint-docs/main.ts: change the code or that script, not this page. -->

# Endpoint conditions: who serves, who drains, who is left out

An endpoint of an EndpointSlice has three conditions, \`ready\`, \`serving\` and \`terminating\`, each true, false or unset.
Systems disagree at the point that matters: the last good endpoint of a Service is about to go. \`drainable/endpoints\` decides
about the whole set, says why, and can also decide as other systems do.

\`\`\`ts
import { formatPlan, mapEndpoints, markByNodes, mergeSlices, planChanges, toDesired } from 'drainable/endpoints'
import type { Decision } from 'drainable/endpoints'
import type { CallContext, DrainableProvider } from 'drainable/provider'

export async function dryRun(
  balancer: DrainableProvider,
  slices: readonly unknown[], // EndpointSlices of one Service, from a cache that is synced
  nodes: readonly unknown[],
  context: CallContext,
): Promise<string> {
  const { capabilities } = await balancer.describe(context)
  const endpoints = markByNodes(mergeSlices(slices, { port: 'http' }), nodes)
  const name = (d: Decision) => \`ctl-\${d.address}:\${d.port}\`
  const desired = toDesired(mapEndpoints(endpoints), { pool: 'web', name })
  const plan = planChanges(desired, await balancer.observe('all', context), {
    pools: ['web'], // nothing else is touched
    owns: (one) => one.ref.member.startsWith('ctl-'), // and no other client's member
    capabilities,
  })
  return formatPlan(plan)
}
\`\`\`

[\`examples/endpoints.ts\`](../examples/endpoints.ts) prints the plans for timelines recorded from a real control plane.

## In a loop of your own

[\`reconcile\`](your-own-controller.md) is that loop, with tickets and back-off. With a queue of your own, \`carryOut\` carries
out a plan, all of its changes at the same time: a hold is a drain with a verdict, a restore goes as \`ready()\` does, and a
removal comes only after a proof of its own. \`apply(plan.changes)\` would open a member before its first health check, and prove
nothing.

\`\`\`ts
import { carryOut, isDrainableError } from 'drainable'
import type { DesiredMember, DrainableProvider } from 'drainable'
import { planChanges } from 'drainable/endpoints'
import { callContext } from 'drainable/provider'

/** Call it at every change of the API and every few seconds, without waiting for the last call. */
export async function step(balancer: DrainableProvider, desired: readonly DesiredMember[], signal: AbortSignal) {
  const context = callContext({ signal })
  const { capabilities } = await balancer.describe(context)
  const plan = planChanges(desired, await balancer.observe('all', context), {
    pools: ['web'],
    owns: (one) => one.ref.member.startsWith('ctl-'),
    capabilities,
    idle: () => true, // carryOut proves it before it removes
  })
  const carried = carryOut(balancer, plan, { timeout: '2m', signal })
  return carried.then(({ steps }) => {
    for (const { change, error } of steps) {
      if (error === undefined || isDrainableError(error, 'DRAIN_OVERRULED')) continue // a later step took it over
      console.error(change.ref.member, error.message)
    }
  })
}
\`\`\`

- **Do not wait for the drains before you plan again.** A member whose drain is under way is found held, and is not planned twice. A
  pod that comes back is ready at once.
- **Each change is for the member that the plan saw.** If the name has moved to another server since, it is left alone
  (\`CONFLICT\`).
- **After a crash nothing is lost**: the next plan starts from what it finds. No ticket is kept.

## The default: \`serve-terminating-fallback\`

The best of tiers 1 to 3 that the set has serves; the others of these tiers drain.

| tier | conditions | meaning |
| --- | --- | --- |
| 1 | ready, not terminating | active |
| 2 | terminating, serving; or tier 1 with intent \`soft\` | on its way out, still good |
| 3 | terminating, not serving, ready | published although not ready, on its way out: the last resort |
| 4 | not ready, not terminating | starting, or its probe fails |
| 5 | not ready, terminating, not serving | shutting down |
| – | intent \`hard\`, or weight 0 | drained by its operator: never serves, and never counts as one that could |

${reasonTable()}

- **Terminating beats ready.** A Service with \`publishNotReadyAddresses\` shows terminating pods as ready. kube-proxy, Cilium and
  Istio then use them like any other pod; here they serve only when no other can.
- **Not ready is drained, not thrown out.** A probe can flap, and an application can fail its probe on SIGTERM while it finishes
  requests. \`unready: 'exclude'\` takes it out instead, once it is idle.
- **Unset** means ready, serving and not terminating, as the API's text has it since v1.33. \`null\`, \`undefined\` and a missing
  field are the same.
- The set is one port name: a ready endpoint of \`metrics\` is no replacement for one of \`http\`.

## What a plan does with it

\`planChanges\` compares with what the balancer has, by address and port. Route domains (\`10.0.0.1%1\`) are different addresses.

| decision | in the balancer | not there |
| --- | --- | --- |
| serve | made ready again if it was held | added |
| drain, still answers | held in \`drain\` | nothing: adding a server to drain it keeps nothing |
| drain, does not answer any more | held as gone | nothing |
| exclude, or no endpoint any more | held as gone; removed once it is idle | nothing |

**Held as gone** is \`maint\` if the product's maint keeps established work, otherwise \`drain\`. A dead server in drain still gets its
sticky clients: HAProxy 2.6 and 3.2 answer them with 503 after 3 s of attempts, and send them to another server in maint. Pass
\`capabilities\` from \`describe()\`, or \`gone\`: a plan that knows nothing of the product drains.

**Nothing is deleted because it vanished.** When a Node object is deleted, or a label changed, endpoints disappear with no
terminating step. They are removed only when they are proved idle: by \`idle\`, in which you say whose drain reported so, or by
every process of a product that can tell it.

**Nothing is touched that is not named.**

- \`pools\` are the pools that the list speaks for, each as a whole. A named pool of which the list says nothing has lost its last
  endpoint, as a Service scaled to zero. Every other pool stays as it is.
- \`owns\` says which members of these pools are yours. Decide by a prefix of the name: a virtual machine or a backup server in the same
  pool has no endpoint either, and would be taken out. \`() => true\` claims all.

**A name blocks no address.** An endpoint whose name is taken by a member at another address, such as a pod of a StatefulSet that
comes back, is added under another name: the same beginning, a mark of its address, and a port at the end if the name has one. It is
the same name in every plan. Only a member of which the snapshot has no address keeps its name for itself.

**What holds a plan back** is in \`held\`, with the reason:

- An empty list changes nothing without \`allowEmpty\`, and an unsynced one (\`synced: false\`) never does.
- \`keepReady\` members (default 1) of each pool keep taking new work: not down, weight above 0, and with an endpoint. One that is
  only about to be added does not count yet. One of which no check has passed yet (health \`unknown\`) counts in the place of another
  such one, and does not let the last working one go. A member whose endpoint is gone is held as soon as another one counts, whatever
  \`keepReady\` says.
- Members that \`owns\` does not claim, members without an address, and states that are not understood are left alone. A plan
  remembers nothing: a member of yours that an operator holds by hand is made ready again if its endpoint serves.

## Other systems, by name

\`mapEndpoints(endpoints, { strategy: 'kube-proxy' })\` decides as that system does. A function of your own is a strategy, too.

| strategy | who decides so |
| --- | --- |
| \`kube-proxy\` | the ready ones; if there are none, the terminating ones that serve; per node with \`policy: 'local'\`; hints with \`topology\` |
| \`cilium-l4\`, \`cilium-l7\` | Cilium in eBPF; Cilium's Envoy since pull 46642 (2026-06) |
| \`envoy-gateway\`, \`envoy-gateway-1.3\` | Envoy Gateway since v1.6.0; v1.3.0 to v1.5.x |
| \`pr4946-proposal\`, \`pr4946-objection\` | the table of Envoy Gateway's pull 4946, as proposed and as objected to; below |
| \`istio\` | Istio's pilot; \`persistentSession\`, \`sendUnhealthy\` |
| \`ready-only\` | Contour, ingress-nginx, openshift/router, Linkerd, kgateway, haproxy-ingress without drain support |
| \`ready-only-strict\` | the same, with "unset" as not ready: haproxytech's ingress, Traefik for the Gateway API, TCP and UDP |
| \`haproxy-ingress-drain\` | haproxy-ingress with \`drain-support: true\` |
| \`traefik\` | Traefik for HTTP: it does not look at \`ready\` |
| \`gce-neg\` | network endpoint groups of Google Cloud: the load balancer's own checks decide about readiness |

Columns: ready, serving, terminating; \`T\` true, \`F\` false, \`-\` unset. Cells: what happens to such an endpoint when it is alone,
beside a ready one, beside a terminating one that serves, and beside one that is not ready. \`S\` serve, \`D\` drain, \`x\` exclude. The
EndpointSlice controller never writes \`FTF\`, but the API server accepts it from other clients.

${saidTable()}

With unset conditions:

${unsaidTable()}

A named strategy gives the health word of its system. Intents and weight 0 are followed too: hard and weight 0 never serve, and soft
looks like a terminating endpoint that still serves.

## The table that started it: Envoy Gateway, pull 4946

In January 2025 this pull proposed a table for endpoints on their way out; one objection was to its last row. Another rule was
merged, which decides each endpoint alone, with Envoy's panic mode as the fallback. In v1.6.0 another one replaced it. The columns
are computed by the strategies above, with \`ready\` as the controller writes it.

${pullTable()}

In rows 4 and 5 no better endpoint is available. The proposal keeps A healthy. The others leave it to panic.

### What Envoy ${panic.version} really does

Hosts with the health that an EDS server gave them, round robin, ${panic.requestsPerRow} requests for each row; measured by
\`scripts/endpoint-docs/envoy-panic.ts\`. The column "panics" is \`lb_healthy_panic\`.

${panicTable(panic)}

- DRAINING hosts do not lower the health ratio: they are left out of it (\`membership_excluded\`, since Envoy pull 30622 of 2023).
- With DRAINING hosts alone, only panic keeps the service up.
- Panic can't tell a pod that serves from one that never was ready: a DRAINING host and an UNHEALTHY one get the same share, also
  in a panic that UNHEALTHY hosts cause. Upstream calls that a bug (issue 46800; the fix proposed in pull 46823 was open in August
  2026). With the fix, a cluster of only DRAINING hosts refuses everything.

### What we do, and why

\`serve\` is HEALTHY, \`drain\` is DRAINING, and UNHEALTHY is never said. So no panic is ever needed, and a panic threshold of 0
is safe and recommended.

In row 2, and if only unready endpoints are left, none serves. If the threshold is above 0, leave those that hold no connections
out of the EDS response, or panic will use them.

## Slices and nodes

\`mergeSlices\` makes one list of all slices of a Service; take one port with \`port\`. Slices of more than one Service are refused,
naming them, unless \`service: 'namespace/name'\` says which one is meant.

While endpoints move, several slices can have the same address and port. That is one endpoint, in whatever order the slices come:

1. A record that says terminating beats its stale twin of the same pod.
2. Of several records of one pod, the one in the slice with the higher \`resourceVersion\` counts (comparable by KEP-5504, stable
   in Kubernetes 1.35).
3. Then the better tier counts, so an address that a new pod took over belongs to the live one.
4. Then the smaller slice name.

\`mapNodes\` is for balancers that send to node ports. These mark a node \`soft\`:

- the taints \`ToBeDeletedByClusterAutoscaler\` and \`karpenter.sh/disrupted\`;
- the label \`node.kubernetes.io/exclude-from-external-load-balancers\`;
- a deletion that waits, or a node that is not selected any more;
- the conditions of KEP-5683 that are \`True\` (Kubernetes 1.37, alpha, set by administrators alone): \`DrainInProgress\`, \`Drained\` and
  \`GracefulNodeShutdownInProgress\` by default; \`MaintenancePlanned\` and \`MaintenanceInProgress\` if \`conditions\` names them.

A node that is not Ready does not answer. In a graceful shutdown a node turns NotReady while its pods still answer: it then counts
as terminating and serving, not as gone. A cordon means nothing unless \`cordon: 'drain'\`.

With \`externalTrafficPolicy: Local\` give it \`local\`, the Service's endpoints. A node is then as good as the best endpoint on it,
which is what kube-proxy's health check port tells a balancer.

\`markByNodes\` lets pods leave before their node does. It also closes a gap: in our recordings the endpoints of a deleted Node
object still looked ready for 0.1 to 0.2 s.

## What it costs

Merging and mapping costs less than parsing the same JSON did: [benchmarks](benchmarks.md#endpoint-slices-into-decisions-and-a-plan).

## Limits

- Only the first address of an endpoint counts; Kubernetes gives the others no meaning.
- A port without a number means every port. No balancer can be given that, so it is skipped.
- FQDN slices are skipped unless \`families\` names them.
- A plan does not change the weight of an existing member.
- Zone and node hints count for \`kube-proxy\` with \`topology\` only: a balancer outside of the cluster has no zone.
`
}
