/** An adapter of one's own, on the kit: a target group of AWS ELB. It counts nothing; deregistration is its drain. */
import { carefulApply, formatSocket, toDrainableError } from 'drainable/kit'
import type { CallContext, DrainableProvider, PresentReading } from 'drainable/provider'
import { DrainableError } from 'drainable/provider'

export interface Target {
  readonly id: string
  readonly ip: string
  readonly port: number
  readonly state: 'healthy' | 'unhealthy' | 'draining' | 'unused'
}

/** What is used of the vendor's client. */
export interface TargetGroup {
  health(signal: AbortSignal): Promise<readonly Target[]>
  register(id: string, signal: AbortSignal): Promise<void>
  deregister(id: string, signal: AbortSignal): Promise<void>
}

/** States of a target that gets no new work; `unused` is the group's word that nothing is left. */
const LEFT = new Set<Target['state']>(['draining', 'unused'])

/** A target group, known by its ARN. `delay` is its deregistration delay, `freshness` how old its word can be, in ms. */
export function awsTargetGroup(
  arn: string,
  elb: TargetGroup,
  { freshness = 15_000, delay = 300_000 } = {},
): DrainableProvider {
  const provider = 'aws-elb'
  const closed = new AbortController()

  async function read({ signal, clock }: CallContext): Promise<readonly PresentReading[]> {
    closed.signal.throwIfAborted()
    const sampledAt = clock.now()
    const targets = await elb.health(signal).catch((thrown: unknown) => {
      signal.throwIfAborted()
      throw toDrainableError(thrown, provider, 'DescribeTargetHealth')
    })
    const none = { active: 0, queued: 0, state: 'read', sampledAt } as const
    return targets.map(({ id, ip, port, state }) => ({
      ref: { pool: arn, member: id },
      present: true,
      identity: formatSocket(ip, port),
      address: ip,
      port,
      own: LEFT.has(state) ? 'drain' : 'ready',
      serves: state === 'healthy',
      health: LEFT.has(state) ? 'unchecked' : state === 'healthy' ? 'up' : 'down',
      scopes: [{ ...none, scope: arn, incarnation: arn, released: state === 'unused' }],
    }))
  }

  const capabilities = {
    ladder: ['ready', 'drain'],
    maint: 'none',
    terminate: false,
    remove: false,
    add: true,
    counts: 'none',
    freshness,
    blind: 0,
    lateBound: 5_000,
    survivesReload: true,
    countsAfterRemove: false,
    minTimeout: delay,
  } as const
  const find = (all: readonly PresentReading[], pool: string, member: string) =>
    pool === arn ? all.find(({ ref }) => ref.member === member) : undefined

  return {
    specVersion: 1,
    name: provider,
    instance: arn,
    describe: () => Promise.resolve({ product: 'aws-elbv2', version: '2015-12-01', capabilities }),
    async observe(refs, ctx) {
      const all = await read(ctx)
      const asked = (refs === 'all' ? all : refs.map((ref) => ({ ref }))).map(({ ref }) => {
        const found = find(all, ref.pool, ref.member)
        return found === undefined
          ? ({ ref, present: false, scopes: [] } as const)
          : { ...found, ref }
      })
      const serving = all.filter(({ serves }) => serves).length
      return {
        readings: asked,
        pools: [{ pool: arn, serving, total: all.length, whenNone: 'all' }],
      }
    },
    apply: (changes, ctx) =>
      carefulApply(
        {
          provider,
          async look() {
            const all = await read(ctx)
            return ({ ref }) => find(all, ref.pool, ref.member)
          },
          hold: ({ ref }) => elb.deregister(ref.member, ctx.signal),
          restore: ({ ref }) => elb.register(ref.member, ctx.signal),
          add: ({ ref }) => elb.register(ref.member, ctx.signal),
          maint: 'a target group has no maint, hold drain',
          terminate: 'a target group cuts by itself when its deregistration delay is over',
          remove: 'a target that is deregistered is out already, hold drain',
        },
        changes,
        ctx,
      ),
    close() {
      closed.abort(
        new DrainableError('CONNECTION_LOST', `${arn} was closed`, { provider, retryable: false }),
      )
      return Promise.resolve()
    },
    [Symbol.asyncDispose]() {
      return this.close()
    },
  }
}
