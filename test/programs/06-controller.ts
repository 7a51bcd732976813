// External F5 from EndpointSlices, several replicas; CR drain: { enabled, timeoutSeconds }; status.drainingMembers.
import { reconcile, type TicketStore } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { mergeSlices, mapEndpoints, toDesired } from 'drainable/endpoints'
interface CR {
  spec: { pool: string; drain?: { enabled: boolean; timeoutSeconds?: number } }
  status: { drainingMembers: unknown[] }
}
declare const slices: () => readonly unknown[]
declare const synced: () => boolean
declare const onChange: (fn: () => void) => void
declare function patchStatus(s: CR['status']): void
declare const configMapStore: TicketStore
export async function lead(cr: CR, signal: AbortSignal) {
  await using lb = f5Bigip({
    url: 'https://bigip',
    username: 'ctl',
    password: async () => process.env.F5_PASSWORD ?? '',
    partition: 'k8s',
    tls: { ca: '/ca.pem' },
  })
  const seconds = cr.spec.drain?.timeoutSeconds ?? 30
  const r = reconcile(lb, {
    pools: [cr.spec.pool],
    drain: cr.spec.drain?.enabled ?? true,
    timeout: `${seconds}s`,
    onTimeout: 'terminate',
    onMinimum: 'wait',
    onOverrule: 'reapply',
    tickets: configMapStore,
    signal,
    owns: (x) => x.present && x.ref.member.startsWith('ctl-'),
  })
  r.on('status', (s) =>
    patchStatus({
      drainingMembers: s
        .filter((m) => m.phase === 'draining')
        .map((m) => ({
          name: m.ref.member,
          since: m.since,
          deadline: m.deadline,
          connections: m.active,
          reason: m.why[0]?.text,
        })),
    }),
  )
  const push = () => {
    if (synced())
      r.set(
        toDesired(mapEndpoints(mergeSlices(slices(), { port: 'https' })), {
          pool: cr.spec.pool,
          name: (d) => `${d.address}:${d.port}`,
        }),
      )
  }
  onChange(push)
  push()
  await r.done
}
