import { explain } from 'drainable/machine'
import type { Why } from 'drainable/provider'
import { reportMember } from '../../../../../src/core/runner/report.js'
import type { Case, Node } from '../node.js'

/** Words that a text has only by a mistake. */
const SLIPS = /undefined|NaN|Infinity|\[object|null/

/** What a success may still explain: what kept idle from being verified. */
const AFTER_SUCCESS = ['old-scope', 'unreadable', 'no-counts']

/** What is wrong with what a person reads in this state; empty where all is well. */
export function wrongWords({ machine, now }: Node, { policy, world }: Case): readonly string[] {
  const why = explain(machine, policy, now, 0)
  const report = reportMember(machine, policy, now, 0)
  const { ending, last, goal, phase, proof } = machine
  const outcome = ending.ended?.outcome
  const wrong: string[] = []
  const say = (isWrong: boolean, text: string): void => {
    if (isWrong) wrong.push(text)
  }
  const waits = ending.ended === null && last !== null && goal.kind !== 'watch'
  say(waits && why.length === 0, 'why() is empty before the end')
  const over = outcome === 'timeout' && phase !== 'idle' && ending.holding && last !== null
  say(over && why.length === 0, 'why() is empty after a timeout')
  say(outcome === 'restored' && why.length > 0, 'why() is not empty after an undo')
  const success = outcome === 'removed' || outcome === 'terminated'
  say(
    success && why.some(({ code }) => !AFTER_SUCCESS.includes(code)),
    'a success carries a why that is over',
  )
  const unverified = phase === 'idle' && outcome === 'idle' && !report.verifiedIdle
  say(unverified && why.length === 0, 'an idle that is not verified says no reason')
  const verified = phase === 'idle' || phase === 'removed'
  say(report.verifiedIdle && !verified, 'verifiedIdle of a member that is not idle')
  say(report.verifiedIdle && proof.lost.length > 0, 'verifiedIdle beside lost work')
  say(why.some(isSlip), 'a why has a slip in its words')
  const unseen = world.unverified && machine.found !== null
  const weak = policy.capabilities.counts === 'none' || unseen
  say(report.verifiedIdle && weak, 'verifiedIdle of what can not be verified')
  const { refusal } = machine.hold
  const tells = waits && refusal !== null
  say(tells && phase !== 'idle' && why[0]?.code !== 'refused', 'a refusal is not the first why')
  return wrong
}

function isSlip({ text, hint = 'a hint' }: Why): boolean {
  return SLIPS.test(text) || SLIPS.test(hint) || text === '' || hint === ''
}
