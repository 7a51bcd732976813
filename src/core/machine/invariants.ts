import { atLeast } from '../../provider/admin-state.js'
import { type DrainState } from './state.js'

/**
 * Checks the invariants of every state that the machine can reach. Tests run it after every transition.
 *
 * @returns the broken invariants; empty if there are none
 */
export function brokenInvariants(state: DrainState): readonly string[] {
  return INVARIANTS.filter(([, holds]) => !holds(state)).map(([text]) => text)
}

const INVARIANTS: readonly (readonly [string, (state: DrainState) => boolean])[] = [
  [
    'phase idle rests on a verdict of this run and its proof',
    ({ phase, proof }) => phase !== 'idle' || (proof.verdict !== null && proof.proof !== null),
  ],
  [
    'only an idle or removed member has a proof',
    ({ phase, proof }) => proof.proof === null || phase === 'idle' || phase === 'removed',
  ],
  [
    'sealed is said only of a member that is idle, or was',
    ({ phase, proof }) => !proof.sealed || phase === 'idle' || phase === 'removed',
  ],
  [
    'samples count only while the wish is in effect',
    ({ proof }) =>
      proof.effectiveSince !== null ||
      [...proof.scopes.values()].every((track) => track.zeros === null),
  ],
  [
    'no sample that counts is older than the effect',
    ({ proof }) =>
      [...proof.scopes.values()].every(
        ({ zeros }) => zeros === null || zeros.first.sampledAt > (proof.effectiveSince ?? Infinity),
      ),
  ],
  [
    'every sample that counts is a whole zero of one process',
    ({ proof }) =>
      [...proof.scopes.values()].every(
        ({ zeros, last }) =>
          zeros === null ||
          [zeros.first, zeros.last].every(
            (sample) =>
              sample.state === 'read' &&
              sample.active === 0 &&
              sample.queued === 0 &&
              sample.incarnation === last.incarnation &&
              sample.arrivals === zeros.last.arrivals,
          ),
      ),
  ],
  [
    'a process that ended is dropped',
    ({ proof }) => [...proof.scopes.values()].every(({ last }) => last.state !== 'ended'),
  ],
  [
    'nothing is wished where the goal is not to drain',
    ({ goal, hold }) => goal.kind === 'drain' || hold.wish === 'none',
  ],
  [
    'what was confirmed is at most what is wished',
    ({ hold }) => atLeast(hold.wish, hold.confirmed),
  ],
  [
    'the next look decides whether a refused change was half made',
    ({ hold }) => hold.late.every(({ refused, until }) => refused !== true || until !== null),
  ],
  [
    'a watch changes nothing',
    ({ goal, hold }) =>
      goal.kind !== 'watch' || (hold.pending === null && hold.changes.length === 0),
  ],
  [
    'a restored member owes nothing but what may be late, and a ledger until its run has ended',
    ({ ending, hold }) =>
      ending.ended?.outcome !== 'restored' ||
      (hold.pending === null && (ending.holding || hold.changes.length === 0)),
  ],
  [
    'an ended run has its moment',
    ({ ending, startedAt }) => ending.ended === null || ending.ended.at >= startedAt,
  ],
  ['a settled run has an outcome', ({ ending }) => !ending.settled || ending.ended !== null],
  ['removed is the end', ({ phase, ending }) => phase !== 'removed' || ending.ended !== null],
]
