// Third-party adapter: AWS ELB target group. No per-target count, "drain" is deregistration, 'unused' is the balancer's word after a fixed delay.
import type {
  DrainableProvider,
  Change,
  ChangeResult,
  LoadScope,
  PresentReading,
  Reading,
  ProviderInfo,
} from 'drainable/provider'
import { DrainableError } from 'drainable'
import { providerContract, type ContractHarness } from 'drainable/testing'
declare const elb: {
  health(): Promise<
    {
      id: string
      ip: string
      port: number
      state: 'healthy' | 'unhealthy' | 'draining' | 'unused'
    }[]
  >
  deregister(id: string, s: AbortSignal): Promise<void>
  register(id: string, s: AbortSignal): Promise<void>
}
export function awsTargetGroup(arn: string): DrainableProvider {
  const info: ProviderInfo = {
    product: 'aws-elbv2',
    version: '2015-12-01',
    capabilities: {
      ladder: ['ready', 'drain'],
      maint: 'none',
      terminate: false,
      remove: false,
      add: true,
      counts: 'none',
      freshness: 15_000,
      blind: 0,
      lateBound: 5_000,
      survivesReload: true,
      countsAfterRemove: false,
      minTimeout: 300_000,
    },
  }
  return {
    specVersion: 1,
    name: 'aws-elb',
    instance: arn,
    describe: async () => info,
    observe: async (refs, { clock }) => {
      const rows = await elb.health()
      const scope = (s: string): LoadScope => ({
        scope: arn,
        incarnation: arn,
        state: 'read',
        sampledAt: clock.now(),
        active: 0,
        queued: 0,
        inForce: true,
        released: s === 'unused',
      })
      const all = rows.map((t): PresentReading => ({
        ref: { pool: arn, member: t.id },
        present: true,
        identity: `${t.ip}:${t.port}`,
        address: t.ip,
        port: t.port,
        own: t.state === 'draining' || t.state === 'unused' ? 'drain' : 'ready',
        serves: t.state === 'healthy',
        health: t.state === 'healthy' ? 'up' : 'unknown',
        scopes: [scope(t.state)],
      }))
      const readings: Reading[] =
        refs === 'all'
          ? all
          : refs.map(
              (ref) =>
                all.find((r) => r.ref.member === ref.member) ?? { ref, present: false, scopes: [] },
            )
      return {
        readings,
        pools: [
          {
            pool: arn,
            serving: all.filter((r) => r.serves).length,
            total: all.length,
            whenNone: 'all',
          },
        ],
      }
    },
    apply: async (changes, { signal }) =>
      Promise.all(
        changes.map(async (c: Change): Promise<ChangeResult> => {
          const now = (await elb.health()).find((t) => t.id === c.ref.member)
          if (
            c.kind !== 'add' &&
            c.identity !== undefined &&
            now &&
            `${now.ip}:${now.port}` !== c.identity
          )
            return {
              ref: c.ref,
              status: 'rejected',
              error: new DrainableError('CONFLICT', `${c.ref.member} is another target now`, {
                ref: c.ref,
              }),
            }
          switch (c.kind) {
            case 'hold':
              if (c.to === 'drain') await elb.deregister(c.ref.member, signal)
              else
                return {
                  ref: c.ref,
                  status: 'rejected',
                  error: new DrainableError(
                    'UNSUPPORTED',
                    'a target group has no maint; use drain',
                    { ref: c.ref },
                  ),
                }
              return { ref: c.ref, status: 'applied' }
            case 'restore':
              if (
                c.expect !==
                (now?.state === 'draining' || now?.state === 'unused' ? 'drain' : 'ready')
              )
                return {
                  ref: c.ref,
                  status: 'rejected',
                  error: new DrainableError(
                    'CONFLICT',
                    `${c.ref.member} was changed by another client`,
                    { ref: c.ref },
                  ),
                }
              if (c.to === 'ready') await elb.register(c.ref.member, signal)
              return { ref: c.ref, status: 'applied' }
            case 'add':
              await elb.register(c.ref.member, signal)
              return { ref: c.ref, status: 'applied' }
            case 'remove':
            case 'terminate':
              return {
                ref: c.ref,
                status: 'rejected',
                error: new DrainableError('UNSUPPORTED', `${c.kind}: not on a target group`, {
                  ref: c.ref,
                }),
              }
            default:
              throw c satisfies never
          }
        }),
      ),
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
}
declare function test(n: string, fn: () => Promise<void>, ms: number): void
declare function openHarness(): Promise<ContractHarness>
for (const c of providerContract(openHarness)) test(c.name, c.run, c.timeout)
