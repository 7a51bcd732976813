import { atLeast, isInForce } from '../../provider/admin-state.js'
import type { AdminState, PresentReading, Reading } from '../../provider/contract.js'
import type { HeldBack, PlannedChange, PlanOptions, Wish } from './plan.js'
import { answer } from './plan-shapes.js'
import type { ReadyFloor } from './ready-floor.js'

/** The change that brings a member to its wish, or why there is none, or nothing to say. */
export function planMember(
  wish: Wish,
  floor: ReadyFloor,
  options: PlanOptions,
): PlannedChange | HeldBack | undefined {
  const { reading, state, reason } = wish
  const { ref, identity, own } = reading
  if (own === 'unknown') {
    return {
      ref,
      reason: `the balancer's state is not understood, so ${wishText(wish)} is not asked for`,
    }
  }
  if (state === 'serve') {
    if (own !== 'ready') {
      return { change: { kind: 'restore', ref, identity, expect: own, to: 'ready' }, reason }
    }
    if (reading.inherited === undefined || reading.inherited === 'ready') return undefined
    return { ref, reason: `it should serve and is ready itself, but inherits ${reading.inherited}` }
  }
  const level = state === 'drain' ? { to: 'drain' as const, why: '' } : goneLevel(reading, options)
  const to = knownLevel(level.to, options)
  if (to === undefined)
    return { ref, reason: `the product knows no ${level.to}, so ${reason} can't be followed` }
  if (!atLeast(own, to)) {
    if (!floor.take(wish)) return { ref, reason: `${reason}, but ${floor.text}` }
    const said = level.why === '' ? reason : `${reason}; ${level.why}`
    return { change: { kind: 'hold', ref, identity, to }, reason: said, keepReady: floor.of(wish) }
  }
  return wish.remove ? planRemove(wish, own, floor, options) : undefined
}

/** How a member that does not answer is held, and why so. */
function goneLevel(
  reading: PresentReading,
  options: PlanOptions,
): { readonly to: 'drain' | 'maint'; readonly why: string } {
  const effect = reading.maint ?? options.capabilities?.maint
  if (options.gone === 'drain') return { to: 'drain', why: '' }
  switch (effect) {
    case 'gentle':
      return {
        to: 'maint',
        why: 'maint keeps its established work and sends sticky clients elsewhere',
      }
    case 'cuts':
      return { to: 'drain', why: 'drain, because maint would cut its established work' }
    case 'none':
      return { to: 'drain', why: '' }
    case 'unknown':
    case undefined:
      return options.gone === 'maint'
        ? { to: 'maint', why: '' }
        : {
            to: 'drain',
            why: 'drain, because it is not known whether maint keeps its established work',
          }
  }
}

/** The level itself, or the next stronger or weaker one the product has. */
function knownLevel(to: 'drain' | 'maint', { capabilities }: PlanOptions): typeof to | undefined {
  const ladder = capabilities?.ladder
  if (ladder === undefined || ladder.includes(to)) return to
  return to === 'maint' && ladder.includes('drain') ? 'drain' : undefined
}

function planRemove(
  wish: Wish,
  own: AdminState,
  floor: ReadyFloor,
  options: PlanOptions,
): PlannedChange | HeldBack {
  const { reading, reason } = wish
  const { ref, identity } = reading
  if (options.capabilities?.remove === false) {
    return {
      ref,
      reason: `${reason}; it stays in ${own}, since the product can't take members out`,
    }
  }
  const idle = options.idle ?? isReleased
  if (answer('idle', idle(reading), reading)) {
    const change = { kind: 'remove', ref, identity } as const
    return { change, reason: `${reason}, and it is idle`, keepReady: floor.of(wish) }
  }
  return { ref, reason: `${reason}; it is in ${own} and not proved idle (${loadText(reading)})` }
}

/** Nothing new can come, and every process says by itself that nothing is left. */
function isReleased(reading: Reading): boolean {
  if (!reading.present) return false
  const { scopes, own, sealed = own === 'maint' } = reading
  if (own === 'unknown' || !sealed) return false
  return (
    scopes.length > 0 &&
    scopes.every(
      (scope) =>
        scope.state === 'ended' ||
        (scope.state === 'read' &&
          isInForce(scope, own) &&
          scope.released === true &&
          scope.active === 0 &&
          scope.queued === 0),
    )
  )
}

function loadText({ scopes }: PresentReading): string {
  const unread = scopes.filter(({ state }) => state === 'unread').length
  const read = scopes.filter(({ state }) => state === 'read')
  const active = read.reduce((sum, scope) => sum + scope.active, 0)
  const queued = read.reduce((sum, scope) => sum + scope.queued, 0)
  const parts = [`${active} in flight`, `${queued} queued`]
  if (unread > 0) parts.push(`${unread} of ${scopes.length} processes not read`)
  return parts.join(', ')
}

/** A wish in a few words. */
function wishText({ state }: Wish): string {
  return state === 'serve' ? 'ready' : 'a drain'
}
