import type { Drain, DrainReport, DrainableProvider, MemberReport, Policy, Target } from 'drainable'
import { drain } from 'drainable'

/** What the core is to have; one place for what its types do not say yet. */

/** Whether an undo says that a member is as it was. */
export function saysRestored({ outcome }: MemberReport): boolean {
  return outcome === 'restored'
}

type Action = (report: DrainReport, given: { readonly signal?: AbortSignal }) => Promise<string>

/** `drain` with an action that listens to its signal, where it is given one. */
export function drainWith(
  p: DrainableProvider,
  target: Target,
  policy: Policy,
  action: Action,
): Promise<string> {
  const call = drain as (
    p: DrainableProvider,
    target: Target,
    policy: Policy,
    action: (report: DrainReport, given?: { readonly signal?: AbortSignal }) => Promise<string>,
  ) => Promise<string>
  return call(p, target, policy, (report, given = {}) => action(report, given))
}

/** Resolves once every member was in force, or the drain ended. */
export function inForceOf(handle: Drain): Promise<boolean> | undefined {
  return (handle as Drain & { readonly inForce?: Promise<boolean> }).inForce
}
