import type { DesiredMember } from '../../provider/desired.js'
import {
  A_PORT,
  AN_AMOUNT,
  checkFlag,
  checkOptions,
  checkText,
  checkTexts,
  checkWord,
  isAmount,
  isObject,
  isPort,
  refuse,
} from '../check.js'
import type { PlanOptions } from './plan.js'

export const SUBJECT = 'planChanges()'

/** What `planChanges` was given beside the snapshot, or an error that names the place. */
export function checkPlanInput(desired: readonly DesiredMember[], options: PlanOptions): void {
  checkPlanOptions(options)
  checkDesiredList(SUBJECT, desired, options.pools)
}

/** A list of desired members of these pools, or an error that names the place. */
export function checkDesiredList(
  subject: string,
  desired: unknown,
  pools: readonly string[],
): asserts desired is readonly DesiredMember[] {
  if (!Array.isArray(desired)) refuse(subject, 'desired', desired, 'a list of desired members')
  const named = new Set(pools)
  for (let i = 0; i < desired.length; i++) checkDesired(subject, desired[i], i, named)
}

/** Written for a hundred thousand members: a path becomes text only where something is wrong. */
// eslint-disable-next-line complexity -- one check a field
function checkDesired(subject: string, one: unknown, i: number, pools: ReadonlySet<unknown>): void {
  if (!isObject(one)) refuse(subject, `desired[${i}]`, one, 'a desired member')
  const { pool, member, address, port, weight, state, serving, ifAbsent, reason } = one
  if (!isName(pool)) refuse(subject, `desired[${i}].pool`, pool, `a pool's name`)
  if (!pools.has(pool)) {
    const named = pools.size === 0 ? 'which is empty' : `which are ${[...pools].join(', ')}`
    refuse(subject, `desired[${i}].pool`, pool, `one of the option pools, ${named}`)
  }
  if (state !== 'serve' && state !== 'drain' && state !== 'absent') {
    refuse(subject, `desired[${i}].state`, state, `'serve', 'drain' or 'absent'`)
  }
  if (member !== undefined && !isName(member))
    refuse(subject, `desired[${i}].member`, member, `a member's name`)
  if (address !== undefined && !isName(address))
    refuse(subject, `desired[${i}].address`, address, 'an address')
  if (member === undefined && address === undefined)
    refuse(subject, `desired[${i}].address`, address, 'an address, or a name in member')
  if (port !== undefined && !isPort(port)) refuse(subject, `desired[${i}].port`, port, A_PORT)
  if (weight !== undefined && !isAmount(weight))
    refuse(subject, `desired[${i}].weight`, weight, AN_AMOUNT)
  if (serving !== undefined && typeof serving !== 'boolean') {
    refuse(subject, `desired[${i}].serving`, serving, 'true or false')
  }
  if (ifAbsent !== undefined)
    checkWord(subject, `desired[${i}].ifAbsent`, ifAbsent, ['add', 'skip'])
  if (reason !== undefined) checkText(subject, `desired[${i}].reason`, reason)
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function checkPlanOptions(options: PlanOptions): void {
  checkOptions(SUBJECT, options, [
    'pools',
    'owns',
    'keepReady',
    'gone',
    'allowEmpty',
    'synced',
    'idle',
    'capabilities',
  ])
  const { keepReady } = options
  const pools: unknown = options.pools
  if (!Array.isArray(pools))
    refuse(SUBJECT, 'pools', pools, 'the names of the pools that desired speaks for')
  checkTexts(SUBJECT, 'pools', pools)
  const owns: unknown = options.owns
  if (typeof owns !== 'function') {
    const every = '() => true claims every member of the pools'
    refuse(SUBJECT, 'owns', owns, `a function that says which members may be changed; ${every}`)
  }
  const idle: unknown = options.idle
  if (idle !== undefined && typeof idle !== 'function') refuse(SUBJECT, 'idle', idle, 'a function')
  if (keepReady !== undefined && (!Number.isInteger(keepReady) || keepReady < 0)) {
    refuse(SUBJECT, 'keepReady', keepReady, 'a whole number from 0')
  }
  checkWord(SUBJECT, 'gone', options.gone, ['maint', 'drain'])
  checkFlag(SUBJECT, 'allowEmpty', options.allowEmpty)
  checkFlag(SUBJECT, 'synced', options.synced)
  if (options.capabilities !== undefined) checkCapabilities(options.capabilities)
}

function checkCapabilities(given: unknown): void {
  if (!isObject(given)) refuse(SUBJECT, 'capabilities', given, 'capabilities, as describe() gives')
  const { ladder, maint, add, remove } = given
  if (!Array.isArray(ladder))
    refuse(SUBJECT, 'capabilities.ladder', ladder, 'a list of admin states')
  checkWord(SUBJECT, 'capabilities.maint', maint, ['gentle', 'cuts', 'unknown', 'none'])
  checkFlag(SUBJECT, 'capabilities.add', add)
  checkFlag(SUBJECT, 'capabilities.remove', remove)
}
