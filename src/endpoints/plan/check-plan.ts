import type { DesiredMember } from '../../core/desired.js'
import type { Snapshot } from '../../provider/contract.js'
import {
  checkFlag,
  checkOptions,
  checkText,
  checkTexts,
  checkWord,
  isObject,
  refuse,
} from '../check.js'
import type { PlanOptions } from './plan.js'

const SUBJECT = 'planChanges()'

/** What `planChanges` was given, or an error that names the place. */
export function checkPlanInput(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: PlanOptions,
): void {
  checkPlanOptions(options)
  if (!Array.isArray(desired)) refuse(SUBJECT, 'desired', desired, 'a list of desired members')
  for (let i = 0; i < desired.length; i++) checkDesired(desired[i], i)
  const given: unknown = snapshot
  if (!isObject(given) || !Array.isArray(given.readings) || !Array.isArray(given.pools)) {
    refuse(SUBJECT, 'snapshot', given, 'a snapshot with readings and pools, as observe() gives it')
  }
}

function checkDesired(one: unknown, i: number): void {
  if (!isObject(one)) refuse(SUBJECT, `desired[${i}]`, one, 'a desired member')
  const { pool, member, address, port, weight, state, serving, ifAbsent } = one
  if (typeof pool !== 'string' || pool === '')
    refuse(SUBJECT, `desired[${i}].pool`, pool, `a pool's name`)
  if (state !== 'serve' && state !== 'drain' && state !== 'absent') {
    refuse(SUBJECT, `desired[${i}].state`, state, `'serve', 'drain' or 'absent'`)
  }
  if (member !== undefined && typeof member !== 'string')
    refuse(SUBJECT, `desired[${i}].member`, member, 'a text')
  if (address !== undefined && typeof address !== 'string')
    refuse(SUBJECT, `desired[${i}].address`, address, 'a text')
  if (port !== undefined && typeof port !== 'number')
    refuse(SUBJECT, `desired[${i}].port`, port, 'a number')
  if (weight !== undefined && typeof weight !== 'number')
    refuse(SUBJECT, `desired[${i}].weight`, weight, 'a number')
  if (serving !== undefined && typeof serving !== 'boolean') {
    refuse(SUBJECT, `desired[${i}].serving`, serving, 'true or false')
  }
  if (ifAbsent !== undefined)
    checkWord(SUBJECT, `desired[${i}].ifAbsent`, ifAbsent, ['add', 'skip'])
  checkText(SUBJECT, `desired[${i}].reason`, one.reason)
}

function checkPlanOptions(options: PlanOptions): void {
  checkOptions(SUBJECT, options, [
    'keepReady',
    'gone',
    'allowEmpty',
    'synced',
    'pools',
    'owns',
    'idle',
    'capabilities',
  ])
  const { keepReady } = options
  if (keepReady !== undefined && (!Number.isInteger(keepReady) || keepReady < 0)) {
    refuse(SUBJECT, 'keepReady', keepReady, 'a whole number from 0')
  }
  checkWord(SUBJECT, 'gone', options.gone, ['maint', 'drain'])
  checkFlag(SUBJECT, 'allowEmpty', options.allowEmpty)
  checkFlag(SUBJECT, 'synced', options.synced)
  checkTexts(SUBJECT, 'pools', options.pools)
  for (const name of ['owns', 'idle'] as const) {
    const given: unknown = options[name]
    if (given !== undefined && typeof given !== 'function')
      refuse(SUBJECT, name, given, 'a function')
  }
}
