import type { DrainReport, LoadEvent, MemberReport, RollEvent, RollReport } from 'drainable'

/** When the events of these tests begin. */
export const BEGAN = Date.parse('2026-03-01T12:00:00.000Z')

export function at(ms: number): string {
  return new Date(BEGAN + ms).toISOString()
}

export const web1 = { pool: 'web', member: 'web1' }

type Load = Partial<Omit<LoadEvent, 'at'>> & { readonly oldActive?: number }

/** A look that showed two in flight, unless told otherwise. */
export function load(ms: number, { oldActive, ...more }: Load = {}): LoadEvent {
  const scope = { scope: 'p', incarnation: 'p', state: 'read', sampledAt: 0, queued: 0 } as const
  const old = oldActive === undefined ? [] : [{ ...scope, active: oldActive, old: true }]
  return {
    type: 'load',
    at: at(ms),
    ref: web1,
    active: 2,
    oldest: null,
    queued: 0,
    complete: true,
    why: [{ code: 'in-flight', ref: more.ref ?? web1, text: '2 in flight' }],
    phase: 'draining',
    own: 'drain',
    health: 'up',
    deadline: null,
    scopes: old,
    ...more,
  }
}

export function memberReport(more: Partial<MemberReport> = {}): MemberReport {
  return {
    ref: web1,
    outcome: 'idle',
    phase: 'idle',
    wasAdmin: 'ready',
    held: true,
    verifiedIdle: true,
    sealed: false,
    proof: { arrivals: 'unchanged', quietSince: at(0), samples: [], text: 'nothing is left' },
    lost: [],
    terminated: 0,
    elapsed: 2_000,
    why: [],
    ...more,
  }
}

export function drainReport(...members: readonly MemberReport[]): DrainReport {
  return { outcome: members[0]?.outcome ?? 'refused', members, elapsed: 2_000 }
}

export function rollReport(more: Partial<RollReport> = {}): RollReport {
  return {
    outcome: 'done',
    servers: [],
    done: [],
    failed: [],
    untouched: [],
    leftDrained: [],
    leftAsFound: [],
    elapsed: 5_000,
    ...more,
  }
}

/** A drain of one member that went well. */
export function goodDrain(ref = web1): readonly RollEvent[] {
  const report = drainReport(memberReport({ ref }))
  return [
    load(0, { ref, phase: 'active', own: 'ready', active: 5, queued: 2 }),
    { type: 'phase', at: at(10), ref, from: 'active', to: 'draining' },
    { type: 'in-force', at: at(15), ref },
    load(15, { ref, active: 5, queued: 1 }),
    load(700, { ref, active: 3, oldActive: 3 }),
    load(1_000, { ref, active: 0, why: [] }),
    { type: 'phase', at: at(2_000), ref, from: 'draining', to: 'idle' },
    { type: 'idle', at: at(2_000), ref, proof: memberReport().proof! },
    { type: 'end', at: at(2_000), outcome: 'idle', report },
  ]
}
