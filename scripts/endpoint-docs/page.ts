/** docs/endpoint-conditions.md, from the code, from what Envoy did, and from the benchmark. */
import { readFileSync } from 'node:fs'
import type { Figures } from '../../bench/endpoints/merge-and-map.ts'
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

function figuresTable(figures: readonly Figures[]): string {
  return table(
    [
      'endpoints',
      'JSON',
      '`JSON.parse`',
      'merge and map',
      'share',
      'plan',
      'peak memory: parse only',
      'with merge and map',
    ],
    figures.map((one) => [
      `${one.endpoints.toLocaleString('en')} ${one.family}`,
      `${one.megabytes} MB`,
      `${one.parse} ms`,
      `${one.mergeAndMap} ms`,
      `${Math.round((100 * one.mergeAndMap) / one.parse)} %`,
      `${one.plan} ms`,
      `${one.peakParse} MB`,
      `${one.peakAll} MB`,
    ]),
  )
}

/** The whole page. */
export function endpointConditionsPage(): string {
  const panic = read('envoy-panic.json') as PanicRecord
  const figures = read('../../bench/endpoints/results.json') as Figures[]
  return `<!-- Written by scripts/endpoint-docs/main.ts: change the code or that script, not this page. -->

# Endpoint conditions: who serves, who drains, who is left out

For controllers that feed a balancer from Kubernetes. An endpoint of an EndpointSlice has three conditions, \`ready\`,
\`serving\` and \`terminating\`, each true, false or not said. What a balancer should do with them is not written anywhere:
every system has rules of its own, and they disagree where it matters, when the last good endpoint of a Service is on its
way out. \`drainable/endpoints\` decides about the whole set, says why, and can do it the way other systems do.

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

[\`examples/endpoints.ts\`](../examples/endpoints.ts) does this for timelines recorded from a real control plane, and
prints the plan of every step.

## In a loop of your own

A plan is carried out by \`carryOut\`, all of its changes at the same time: a hold is a drain with a verdict, a restore goes as
\`ready()\` does, a removal comes only after a proof of its own that the member is idle. Do not pass \`plan.changes\` to
\`apply()\`: a raw restore opens a member before its first health check, and a raw remove proves nothing.

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

- **Do not wait for the drains before you plan again.** What is under way is found held and not planned twice; of a drain and a
  \`ready\` of one member the later wins, so a pod that comes back is ready at once.
- **Each change is for the member that the plan saw.** A name that another server has got since is left alone (\`CONFLICT\`).
- **The floor is asked again when a drain begins**, with what the balancer says then.
- **After a crash nothing is lost**: the next plan starts from what it finds. No ticket is kept.

## The default: \`serve-terminating-fallback\`

Each endpoint has a tier; the best tier of 1 to 3 that the set has serves, the others of them drain.

| tier | conditions | meaning |
| --- | --- | --- |
| 1 | ready, not terminating | active |
| 2 | terminating, serving; or tier 1 with intent \`soft\` | on its way out, still good |
| 3 | terminating, not serving, ready | published although not ready, on its way out: the last resort |
| 4 | not ready, not terminating | starting, or its probe fails |
| 5 | not ready, terminating, not serving | shutting down |
| – | intent \`hard\`, or weight 0 | drained by its operator: never serves, and never counts as one that could |

${reasonTable()}

- **A terminating endpoint yields to a ready one**: new work goes to a pod that lives.
- **It serves on while nothing better is there**: the rollout of a single replica is no blackout.
- **Terminating beats ready.** A Service with \`publishNotReadyAddresses\` shows dying pods as ready. kube-proxy, Cilium and
  Istio then use them like any other; here they serve when nothing else can.
- **Not ready is drained, not thrown out.** A probe that flaps, or an application that fails its probe on SIGTERM while it
  finishes requests, keeps what it has. \`unready: 'exclude'\` takes it out instead, once it is idle.
- **Not said** means ready, serving and not terminating, as the API's text has it since v1.33. \`null\`, \`undefined\` and a
  missing field are the same.
- The set is one port name: a ready endpoint of \`metrics\` is no replacement for one of \`http\`.

## What a plan does with it

\`planChanges\` compares with what the balancer has, by address and port. IPv6 is compared as an address, however it is
spelled; route domains (\`10.0.0.1%1\`) are different addresses.

| decision | in the balancer | not there |
| --- | --- | --- |
| serve | made ready again if it was held | added |
| drain, still answers | held in \`drain\` | nothing: adding a server to drain it keeps nothing |
| drain, does not answer any more | held as gone | nothing |
| exclude, or no endpoint any more | held as gone; removed once it is idle | nothing |

**Held as gone** is \`maint\` where the product's maint keeps established work, else \`drain\`, and the plan says which and why. A
dead server in drain goes on getting its sticky clients: HAProxy 2.6 and 3.2 answer them with 503 after 3 s of attempts;
in maint it sends them to another server at once. Pass \`capabilities\` from \`describe()\`, or \`gone\`: a plan that knows
nothing of the product drains.

**Nothing is deleted because it vanished.** When a Node object is deleted, the endpoints of its ready pods disappear with
no terminating step; a changed label does the same. So what vanished is held first, and removed only when it is proved idle:
by \`idle\`, where you say whose drain reported so, or where every process of a product that can says so itself. One
snapshot of zeros proves nothing.

**Nothing is touched that is not named.** \`pools\` are the pools that the list speaks for, each as a whole: one that the list
says nothing of has lost its last endpoint, which is how a Service scaled to zero looks. Every other pool stays as it is. \`owns\`
says which members of these pools are yours, best by what only yours have, such as a prefix of the name: a virtual machine
or a backup server in the same pool has no endpoint either, and would be taken out. \`() => true\` claims all.

**What holds a plan back** is in \`held\`, with the reason:

- an empty list changes nothing without \`allowEmpty\`, and an unsynced one (\`synced: false\`) never;
- \`keepReady\` members (default 1) of each pool go on taking new work; counted are those that would serve now: not down,
  weight above 0, and not one whose endpoint is gone. What is only about to be added does not count yet. One whose
  endpoint is gone is held all the same while another one counts: new work on it fails, so no capacity is lost;
- members that \`owns\` does not claim, members without an address, and states that are not understood are left alone. A
  plan remembers nothing: a member of yours that an operator holds by hand is made ready again if its endpoint serves;
- a restore out of maint is to be done as [\`ready()\`](../README.md) does it, by way of drain, so that a first health check
  passes before the door opens.

## Other systems, by name

\`mapEndpoints(endpoints, { strategy: 'kube-proxy' })\` decides as that system does, for comparing, for a migration, or
because the balancer should agree with it. A function of your own is a strategy, too.

| strategy | who decides so |
| --- | --- |
| \`kube-proxy\` | the ready ones; if there are none, the terminating ones that serve; per node with \`policy: 'local'\`; hints with \`topology\` |
| \`cilium-l4\`, \`cilium-l7\` | Cilium in eBPF; Cilium's Envoy since pull 46642 (2026-06) |
| \`envoy-gateway\`, \`envoy-gateway-1.3\` | Envoy Gateway since v1.6.0; v1.3.0 to v1.5.x |
| \`pr4946-proposal\`, \`pr4946-objection\` | the table of Envoy Gateway's pull 4946, as proposed and as objected to; below |
| \`istio\` | Istio's pilot; \`persistentSession\`, \`sendUnhealthy\` |
| \`ready-only\` | Contour, ingress-nginx, openshift/router, Linkerd, kgateway, haproxy-ingress without drain support |
| \`ready-only-strict\` | the same, with "not said" as not ready: haproxytech's ingress, Traefik for the Gateway API, TCP and UDP |
| \`haproxy-ingress-drain\` | haproxy-ingress with \`drain-support: true\` |
| \`traefik\` | Traefik for HTTP: \`ready\` is not looked at |
| \`gce-neg\` | network endpoint groups of Google Cloud: readiness is left to the load balancer's own checks |

Columns: ready, serving, terminating; \`T\` true, \`F\` false, \`-\` not said. Cells: what becomes of such an endpoint when it is
alone, beside a ready one, beside a terminating one that serves, and beside one that is not ready. \`S\` serve, \`D\` drain, \`x\`
exclude. \`FTF\` is never written by the EndpointSlice controller, but the API server takes it from others.

${saidTable()}

Where something is not said:

${unsaidTable()}

A named strategy gives the health word of its system. Intents and weight 0, which those systems do not have, are followed
all the same: hard and weight 0 never serve, and soft looks like a terminating endpoint that still serves.

## The table that started it: Envoy Gateway, pull 4946

In January 2025 a table was proposed there for endpoints on their way out, with one objection to its last row; then a rule
for each endpoint by itself was merged, \`draining\` for what is serving and terminating, with the argument that Envoy's panic
mode is the fallback. In v1.6.0 another rule replaced it. The words are Envoy's; the columns are computed by the
strategies above, with \`ready\` as the controller writes it.

${pullTable()}

The difference is in rows 4 and 5: no better endpoint is there. The proposal keeps A healthy, what was merged leaves it to
panic, and so does what holds today.

### What Envoy ${panic.version} really does

Hosts with the health that an EDS server gave them, round robin, ${panic.requestsPerRow} requests for each row; measured by
\`scripts/endpoint-docs/envoy-panic.ts\`. The column "panics" is \`lb_healthy_panic\`.

${panicTable(panic)}

- DRAINING hosts do not lower the health ratio: they are left out of it (\`membership_excluded\`, since Envoy pull 30622
  of 2023). One healthy host beside four draining ones is no panic, so the fear that the merged rule answered does not come
  true.
- With DRAINING hosts alone, panic is what keeps the service up, and it exists only while the threshold is above 0.
- Panic can't tell a pod that serves from one that never was ready: a DRAINING host and an UNHEALTHY one get the same share.
- A panic that UNHEALTHY hosts cause reaches the DRAINING ones, too: a pod that is being shut down gets new work again.
- Upstream calls that a bug (issue 46800; the fix proposed in pull 46823 was open in August 2026). With it, a cluster of only
  DRAINING hosts refuses everything.

### What we do, and why

The fallback is made by the mapper, in the open: \`serve\` is HEALTHY, \`drain\` is DRAINING, and UNHEALTHY is never said, so no
panic is ever needed. With that, a panic threshold of 0 is safe and recommended. Cilium merged the same whole-set rule for
its Envoy in 2026. In row 2 and where only unready endpoints are left, none serves: leave those that hold no
connections out of the EDS response if the threshold is above 0, or panic will use them.

## Slices and nodes

\`mergeSlices\` makes one list of all slices of a Service; take one port with \`port\`. Slices of more than one Service are refused,
naming them, unless \`service: 'namespace/name'\` says which one is meant. The same address and port in several
slices, which happens while endpoints move, is one endpoint whatever the order of the slices: a record that says
terminating beats its stale twin of the same pod, then the better tier counts, so an address that a new pod took over
belongs to the live one, then the smaller slice name.

\`mapNodes\` is for balancers that send to node ports: taints \`ToBeDeletedByClusterAutoscaler\` and \`karpenter.sh/disrupted\`, the
label \`node.kubernetes.io/exclude-from-external-load-balancers\`, a deletion that waits, or not being selected any more mark a
node \`soft\`; one that is not Ready does not answer; a cordon means nothing unless \`cordon: 'drain'\`. The same do the conditions of KEP-5683 that are
\`True\` (Kubernetes 1.37, alpha): \`DrainInProgress\`, \`Drained\` and \`GracefulNodeShutdownInProgress\` by default;
\`MaintenancePlanned\` and \`MaintenanceInProgress\` where \`conditions\` names them, because maintenance may be days ahead and not
all of it needs a drain. In a graceful shutdown a node turns NotReady while its pods still answer: it then counts as
terminating and serving, not as gone. In 1.37 nothing in Kubernetes sets these conditions by itself; administrators and their
tools do. With
\`externalTrafficPolicy: Local\` give it \`local\`, the Service's endpoints: a node is then as good as the best endpoint on it,
which is what kube-proxy's health check port tells a balancer.

\`markByNodes\` lets pods leave before their node does. It also catches a gap: after a Node object is deleted, its endpoints
went on looking ready for 0.1 to 0.2 s in our recordings, and a controller that only looks at conditions would have made them
ready again in between.

## What it costs

Best of several rounds on two busy cores (2026-11-23), Node 24, one process for each size; \`npm run bench endpoints\` measures
yours. Merging and mapping costs less than parsing the same JSON did. Its share grows with the size: it makes about 460 bytes for each
endpoint, and beyond 10,000 these no longer fit the caches and the young generation of the heap.

${figuresTable(figures)}

## Limits

- Only the first address of an endpoint counts; Kubernetes gives the others no meaning.
- A port without a number means every port, which no balancer can be given: it is skipped.
- FQDN slices are skipped unless \`families\` names them.
- Weights are given where a member is added; a plan does not change the weight of one that is there.
- Zone and node hints count for \`kube-proxy\` with \`topology\` only: a balancer outside of the cluster has no zone.
- Nothing here remembers: what was not in the list and comes back is decided anew, from what the balancer has.
`
}
