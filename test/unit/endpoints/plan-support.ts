/** Members, wishes and plans of one pool, in short. */
import { planChanges, type DesiredMember, type Plan, type PlanOptions } from 'drainable/endpoints'
import type { LoadScope, PresentReading, Snapshot } from 'drainable/provider'
import { expect } from 'vitest'

export const idleScope: LoadScope = {
  scope: 'worker 1',
  incarnation: '1',
  state: 'read',
  sampledAt: 0,
  active: 0,
  queued: 0,
  inForce: true,
}

export function reading(
  member: string,
  address: string | undefined,
  more: Partial<PresentReading> = {},
): PresentReading {
  const { own = 'ready' } = more
  return {
    ref: { pool: 'web', member },
    present: true,
    identity: `${address}:80`,
    ...(address === undefined ? {} : { address, port: 80 }),
    own,
    serves: own === 'ready',
    health: 'up',
    scopes: [idleScope],
    ...more,
  }
}

export function snapshotOf(...readings: readonly PresentReading[]): Snapshot {
  const serving = readings.filter(({ serves }) => serves).length
  return { readings, pools: [{ pool: 'web', serving, total: readings.length, whenNone: 'refuse' }] }
}

export function wish(
  address: string,
  state: DesiredMember['state'],
  more: Partial<DesiredMember> = {},
): DesiredMember {
  return { pool: 'web', address, port: 80, state, reason: `wants ${state}`, ...more }
}

/** A plan for the pool `web`, of which every member is ours unless told otherwise. */
export function plan(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: Partial<PlanOptions> = {},
): Plan {
  return planChanges(desired, snapshot, { pools: ['web'], owns: () => true, ...options })
}

/** Changes and what was held, in short: `a drain`, `b restore`, `c held`. */
export function short(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: Partial<PlanOptions> = {},
): string[] {
  const { changes, held, steps } = plan(desired, snapshot, options)
  expect(steps.map(({ change }) => change)).toEqual(changes)
  return [
    ...changes.map(
      (change) => `${change.ref.member} ${change.kind === 'hold' ? change.to : change.kind}`,
    ),
    ...held.map(({ ref }) => `${ref.member} held`),
  ]
}

export const a = reading('a', '10.0.0.1')
export const b = reading('b', '10.0.0.2')
export const gentle = { maint: 'gentle' } as const
/** Of a product whose maint keeps established work. */
export const capabilities = {
  ladder: ['ready', 'drain', 'maint'],
  maint: 'gentle',
  add: true,
  remove: true,
} as const
