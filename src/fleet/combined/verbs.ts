import { abortable } from '../../provider/abort.js'
import { isoOf } from '../../provider/clock.js'
import type { DrainableProvider, Reading } from '../../provider/contract.js'
import type { PlannedChange } from '../../provider/desired.js'
import { DrainableError, toDrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import type { DrainReport } from '../../provider/report.js'
import { emitOn } from '../../core/balancer/home.js'
import { CALL_LIMIT } from '../../core/balancer/look/call.js'
import type { ReadyOptions } from '../../core/calls/ready.js'
import type { CarriedOut, CarryOutReport } from '../../core/calls/steps/carry-out.js'
import { newKeeper } from '../../core/calls/drain-run.js'
import type { Combined, Parts } from '../../core/combined.js'
import { reportAll, withTicket } from '../../core/member/said/report.js'
import { FIRST_ANSWER } from '../../core/tickets/calls.js'
import { TicketWriter } from '../../core/tickets/writing/writer.js'
import { drainCombined, resumeCombined } from './drain.js'
import { callEach, checkKeys, divide, onEach, onParts } from './divide.js'
import { CombinedRun, joinReports } from './run.js'
import { stepCombined } from './step.js'
import {
  bareRef,
  checkAs,
  hearAs,
  listKeys,
  tagError,
  tagReading,
  tagRef,
  tagReport,
} from './tag.js'
import { SharedTicket, sliceTicket } from './ticket.js'

/** The verbs of this package for the balancers of one combined provider. */
export function verbsOf(provider: DrainableProvider, parts: Parts): Combined {
  return {
    ...parts,
    drain: (...call) => drainCombined(provider, parts, ...call),
    resume: (...call) => resumeCombined(provider, parts, ...call),
    restore: restoreOn(provider, parts),
    watch: watchOn(provider, parts),
    select: selectOn(parts),
    ready: readyOn(provider, parts),
    step: (...call) => stepCombined(provider, parts, ...call),
    carryOut: carryOutOn(parts),
  }
}

/** What one of them can't undo stays in the ticket. */
function restoreOn(provider: DrainableProvider, parts: Parts): Combined['restore'] {
  return async (ticket, policy, one) => {
    const { clock, onEvent, tickets: store, onTicket } = policy
    const startedAt = clock.now()
    const { id } = ticket
    const shared = new SharedTicket({ id, provider, parts, store, onTicket, clock })
    const own = [...parts.all].filter(([key]) =>
      ticket.members.some(({ ref }) => ref.balancer === key),
    )
    for (const [key, part] of own) shared.seed(key, sliceTicket(ticket, key, part))
    if (own.length === 0) {
      const writer = new TicketWriter(id, { store, onTicket }, clock, ticket.lease)
      await abortable(writer.drop(FIRST_ANSWER), policy.signal)
    }
    const reports = await Promise.all(
      own.map(async ([key, part]): Promise<DrainReport> => {
        const report = await one(part, sliceTicket(ticket, key, part), {
          ...policy,
          onEvent: hearAs(onEvent, key),
          tickets: undefined,
          onTicket: undefined,
          whole: shared.part(key, part),
        })
        return tagReport(report, key)
      }),
    )
    const members = reports.flatMap((report) => report.members)
    return withTicket(reportAll(members, Math.round(clock.now() - startedAt)), shared.why)
  }
}

function watchOn(provider: DrainableProvider, parts: Parts): Combined['watch'] {
  return (target, policy, subject, emit, one) => {
    checkKeys(target, parts, subject)
    const { clock } = policy
    const waits = policy.data.onUnreachable === 'wait'
    return new CombinedRun({
      kind: 'watch',
      provider,
      parts,
      subject,
      policy,
      emit,
      target,
      waits,
      divide: (signal, away) => {
        const again = waits ? { until: Infinity, away } : {}
        return divide(target, parts, subject, { clock, signal, limit: CALL_LIMIT, ...again })
      },
      open: (_, part, own, hooks) => one(part, own, hooks),
      ticket: undefined,
      unbegun: newKeeper(policy, provider).ticket([]),
    })
  }
}

function selectOn(parts: Parts): Combined['select'] {
  return async (target, subject, call, one) => {
    const all = new Map([...parts.all.keys()].map((key) => [key, 'all' as const]))
    const hits: readonly (readonly [string, readonly Reading[]])[] =
      target === 'all'
        ? await callEach(all, parts, call.signal, one)
        : await onEach(target, parts, subject, call, one)
    return hits.flatMap(([key, own]) => own.map((reading) => tagReading(reading, key)))
  }
}

/** Throws the error of one of them once all have ended; the end is said once, for all of them. */
function readyOn(provider: DrainableProvider, parts: Parts): Combined['ready'] {
  return async (target, options, subject, one) => {
    const { clock, onEvent, waitHealthy } = options
    const startedAt = clock.now()
    const ended: DrainReport[] = []
    const end = (): void => {
      if (ended.length === 0) return
      const report = { ...joinReports(ended), elapsed: Math.round(clock.now() - startedAt) }
      emitOn(provider, { type: 'end', at: isoOf(clock), outcome: report.outcome, report })
    }
    const healthyAs = (key: string): ReadyOptions['waitHealthy'] =>
      typeof waitHealthy === 'function' ? checkAs(waitHealthy, key) : waitHealthy
    const reports = await onEach(target, parts, subject, options, (part, own, key) => {
      const its = { ...options, onEvent: hearAs(onEvent, key), waitHealthy: healthyAs(key) }
      return one(part, own, its, (report) => ended.push(tagReport(report, key)))
    }).finally(end)
    const members = reports.flatMap(([key, report]) =>
      report.members.map((member) => ({ ...member, ref: tagRef(member.ref, key) })),
    )
    return { members }
  }
}

/** Each gets the steps that name it. If one can't be read, its own steps fail and those of the others go on. */
function carryOutOn(parts: Parts): Combined['carryOut'] {
  const { all } = parts
  return async (steps, { signal, onEvent }, subject, one) => {
    const wrong = steps.find(({ change }) => !all.has(change.ref.balancer ?? ''))
    if (wrong !== undefined) {
      const { ref } = wrong.change
      throw new DrainableError(
        'INVALID_OPTIONS',
        `${subject}: plan: ${formatRef(ref)}: balancer: expected one of ${listKeys(all.keys())}`,
        { ref },
      )
    }
    const byKey = Map.groupBy(steps, ({ change }) => change.ref.balancer ?? '')
    const { done } = await onParts(byKey, parts, signal, async (part, own, key) => {
      const bare = own.map((step) => ({
        ...step,
        change: { ...step.change, ref: bareRef(step.change.ref) },
      }))
      return one(part, bare, hearAs(onEvent, key)).catch((thrown: unknown) =>
        allFailed(bare, toDrainableError(thrown, part.name, subject)),
      )
    })
    const carried = new Map<PlannedChange, CarriedOut>()
    for (const [key, { steps: own }] of done)
      for (const [n, { error, report, ...rest }] of own.entries()) {
        const step = byKey.get(key)?.[n]
        if (step === undefined) continue
        carried.set(step, {
          ...rest,
          change: step.change,
          ...(report === undefined ? {} : { report: tagReport(report, key) }),
          ...(error === undefined ? {} : { error: tagError(error, key) }),
        })
      }
    return { steps: steps.flatMap((step) => carried.get(step) ?? []) }
  }
}

function allFailed(steps: readonly PlannedChange[], error: DrainableError): CarryOutReport {
  return {
    steps: steps.map(({ change, reason }) => ({ change, reason, outcome: 'failed', error })),
  }
}
