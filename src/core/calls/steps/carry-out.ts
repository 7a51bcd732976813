import * as z from 'zod/mini'
import type { Change, ChangeResult, DrainableProvider } from '../../../provider/contract.js'
import { DrainableError, toDrainableError } from '../../../provider/error.js'
import { nonEmpty, whole } from '../../../provider/option-schemas.js'
import { once, parseOptions, readGiven } from '../../../provider/options.js'
import type { DrainReport } from '../../../provider/report.js'
import { combinedOf } from '../../combined.js'
import type { Plan, PlannedChange } from '../../../provider/desired.js'
import type { SeenLook } from '../../balancer/look/look.js'
import { schedulerOf, type Scheduler } from '../../balancer/look/scheduler.js'
import { toError } from '../../member/said/report.js'
import { checkProvider } from '../call-options.js'
import { openDrain } from '../drain.js'
import { parsePolicy, type Policy, type ResolvedPolicy } from '../policy.js'
import { openReady } from '../ready.js'
import type { ResolvedTarget } from '../target.js'

/**
 * Options for the drains of a plan. The plan itself says which state holds a member, whether the member is removed,
 * and the floor. No tickets are kept: after a crash, the next plan starts from the state it finds.
 */
export type CarryOutOptions = Omit<
  Policy,
  'hold' | 'until' | 'keepReady' | 'tickets' | 'onTicket' | 'id' | 'owner'
>

/** The result of one change of a plan. */
export interface CarriedOut {
  readonly change: Change
  /** Why it was planned. */
  readonly reason: string
  /**
   * `done`: the change is in place; a held member is idle too, or its drain ended at the deadline as the options
   * allow. `failed`: {@link CarriedOut.error} says why. A member that did not become idle in time stays held.
   */
  readonly outcome: 'done' | 'failed'
  /** How the drain ended, for a hold or a removal. */
  readonly report?: DrainReport
  readonly error?: DrainableError
}

/** The result of a plan, in the plan's order. */
export interface CarryOutReport {
  readonly steps: readonly CarriedOut[]
}

/**
 * Carries out a plan of `planChanges` once, all of its changes at the same time:
 *
 * - a hold as a complete drain, under the floor of the plan, so that a member that is gone can go although the floor
 *   is not met
 * - a restore as `ready()` does it: through drain if the member is in maint
 * - a removal only after its own proof that the member is idle: so a plan for this call can be made with `idle: () =>
 *   true`
 * - an addition as it is
 *
 * Each member must be the one that the plan saw: if its address or name belongs to another member since, it is left
 * alone. A failed change does not stop the others; the report lists it. A loop can plan again before the call ends: a
 * plan finds the members in progress held and does not plan them twice, and of a drain and a `ready` of one member
 * the later wins.
 *
 * @throws `INVALID_OPTIONS` before anything is changed; the error of the first look (behind a combined provider, only
 *   the steps of that balancer fail); `signal.reason` on abort
 *
 * @example
 * ```ts
 * import { carryOut, type DrainableProvider, type DesiredMember } from 'drainable'
 * import { planChanges } from 'drainable/endpoints'
 * import { callContext } from 'drainable/provider'
 *
 * export async function step(lb: DrainableProvider, desired: readonly DesiredMember[]) {
 *   const { capabilities } = await lb.describe(callContext())
 *   const plan = planChanges(desired, await lb.observe('all', callContext()), {
 *     pools: ['web'],
 *     owns: ({ ref }) => ref.member.startsWith('ctl-'),
 *     capabilities,
 *     idle: () => true, // carryOut proves it before it removes
 *   })
 *   const { steps } = await carryOut(lb, plan, { timeout: '30s' })
 *   for (const { change, error } of steps) if (error) console.error(change.ref.member, error.message)
 * }
 * ```
 */
export async function carryOut(
  provider: DrainableProvider,
  plan: Pick<Plan, 'steps'>,
  options: CarryOutOptions = {},
): Promise<CarryOutReport> {
  checkProvider(provider, SUBJECT)
  const steps = checkPlan(plan)
  const policy = checkOptions(options)
  const { clock, signal } = policy
  signal?.throwIfAborted()
  const combined = combinedOf(provider)
  if (combined !== undefined) {
    return combined.carryOut(steps, options, SUBJECT, (part, own, onEvent) =>
      carryOut(part, { steps: own }, { ...options, onEvent }),
    )
  }
  const scheduler = schedulerOf(provider, clock)
  const look = await lookAt(scheduler, steps, signal ?? new AbortController().signal)
  const carrier: Carrier = { provider, scheduler, policy, look, options }
  const carried = await Promise.all(steps.map((step) => carry(carrier, step)))
  signal?.throwIfAborted()
  return { steps: carried }
}

const SUBJECT = 'carryOut()'

/** The state that all steps of one call share. */
interface Carrier {
  readonly provider: DrainableProvider
  readonly scheduler: Scheduler
  readonly policy: ResolvedPolicy
  /** Undefined if the plan changes no existing member. */
  readonly look: SeenLook | undefined
  readonly options: CarryOutOptions
}

async function lookAt(
  scheduler: Scheduler,
  steps: readonly PlannedChange[],
  signal: AbortSignal,
): Promise<SeenLook | undefined> {
  const refs = steps.filter(({ change }) => change.kind !== 'add').map(({ change }) => change.ref)
  if (refs.length === 0) return undefined
  await scheduler.describe(signal)
  return scheduler.look(refs, signal)
}

async function carry(carrier: Carrier, step: PlannedChange): Promise<CarriedOut> {
  const { change, reason } = step
  try {
    const report = await carryChange(carrier, step)
    const error = report === undefined ? undefined : errorOf(change, report)
    return {
      change,
      reason,
      outcome: error === undefined ? 'done' : 'failed',
      ...(report === undefined ? {} : { report }),
      ...(error === undefined ? {} : { error }),
    }
  } catch (thrown) {
    const error = toDrainableError(thrown, carrier.provider.name, SUBJECT)
    return { change, reason, outcome: 'failed', error }
  }
}

/** If two steps remove one member, the second finds it gone: that is not an error. */
function errorOf(change: Change, report: DrainReport): DrainableError | undefined {
  if (change.kind === 'remove' && report.outcome === 'gone') return undefined
  return toError(report)
}

/** Carries out one change completely. */
async function carryChange(
  carrier: Carrier,
  { change, keepReady }: PlannedChange,
): Promise<DrainReport | undefined> {
  const floor = keepReady === undefined ? {} : { keepReady }
  switch (change.kind) {
    case 'hold':
      return drainOf(carrier, change, { hold: change.to, ...floor })
    case 'remove':
      return drainOf(carrier, change, { until: 'removed', ...floor })
    case 'restore': {
      const { signal, clock, onEvent } = carrier.policy
      const { timeout } = carrier.options
      const call = { signal, clock, onEvent, timeout }
      await openReady(carrier.provider, targetOf(carrier, change), call, SUBJECT)
      return undefined
    }
    case 'add':
      await add(carrier, change)
      return undefined
    case 'terminate':
      throw new DrainableError(
        'INVALID_OPTIONS',
        `${SUBJECT}: a plan cuts nothing off, expected no terminate; use onTimeout: 'terminate'`,
        { ref: change.ref },
      )
  }
}

async function drainOf(
  carrier: Carrier,
  change: Change,
  { hold = 'drain', until = 'idle', keepReady }: Pick<Policy, 'hold' | 'until' | 'keepReady'>,
): Promise<DrainReport> {
  const { provider, policy } = carrier
  const data = { ...policy.data, hold, until, keepReady: keepReady ?? policy.data.keepReady }
  const resolved = { ...policy, data }
  const { handle } = openDrain(provider, targetOf(carrier, change), resolved, SUBJECT)
  try {
    return await handle.done
  } finally {
    await handle.release()
  }
}

function targetOf({ look }: Carrier, { ref, identity }: Change): ResolvedTarget {
  const planned = look === undefined ? {} : { planned: { look, identity } }
  return { kind: 'members', refs: [ref], ...planned }
}

async function add({ scheduler, policy }: Carrier, change: Change): Promise<void> {
  const leave = policy.signal ?? new AbortController().signal
  let result: ChangeResult | undefined
  await scheduler.send([change], { leave, giveUp: leave }, (_, told) => {
    result = told
  })
  if (result !== undefined && 'error' in result) throw result.error
}

const stepSchema = /* @__PURE__ */ once(() =>
  z.looseObject({
    change: z.looseObject({
      kind: z.enum(['hold', 'restore', 'remove', 'add', 'terminate']),
      ref: z.looseObject({ pool: nonEmpty(), member: nonEmpty() }),
    }),
    reason: z.string(),
    keepReady: z.exactOptional(whole(0)),
  }),
)

function checkPlan(plan: Pick<Plan, 'steps'>): readonly PlannedChange[] {
  const kind = readGiven(`${SUBJECT}: plan`, () => (Object(plan) as { kind?: unknown }).kind)
  if (kind === 'roll') {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${SUBJECT}: plan: expected changes that may be made at the same time, found the plan of a roll; roll() carries it out, with the same target and options`,
    )
  }
  parseOptions(z.looseObject({ steps: z.array(stepSchema()) }), plan, `${SUBJECT}: plan`)
  return plan.steps
}

/** Options that the plan sets, or that need stored tickets: see {@link CarryOutOptions}. */
const OF_THE_PLAN = ['hold', 'until', 'keepReady', 'tickets', 'onTicket', 'id', 'owner'] as const

function checkOptions(options: CarryOutOptions): ResolvedPolicy {
  const given = readGiven(`${SUBJECT}: the options`, () =>
    OF_THE_PLAN.filter((name) => (Object(options) as Policy)[name] !== undefined),
  )
  if (given.length === 0) return parsePolicy(options, SUBJECT)
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${SUBJECT}: ${given.join(', ')}: the plan sets this already, or carryOut() keeps no ticket for it; leave it out`,
  )
}
