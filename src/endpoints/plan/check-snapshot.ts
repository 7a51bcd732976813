import { AN_AMOUNT, checkText, checkWord, isAmount, isObject, refuse } from '../check.js'

/**
 * A snapshot as far as a plan reads it, or an error that names the place. It may come from a provider
 * that the core never saw. Written for a hundred thousand members: a path becomes text only where
 * something is wrong.
 */
export function checkSnapshot(subject: string, given: unknown): void {
  if (!isObject(given) || !Array.isArray(given.readings) || !Array.isArray(given.pools)) {
    refuse(subject, 'snapshot', given, 'a snapshot with readings and pools, as observe() gives it')
  }
  const readings: readonly unknown[] = given.readings
  const pools: readonly unknown[] = given.pools
  for (let i = 0; i < readings.length; i++) checkReading(subject, readings[i], i)
  for (let i = 0; i < pools.length; i++) checkPool(subject, pools[i], i)
}

function checkPool(subject: string, one: unknown, i: number): void {
  const path = `snapshot.pools[${i}]`
  if (!isObject(one)) refuse(subject, path, one, 'a pool')
  if (typeof one.pool !== 'string') refuse(subject, `${path}.pool`, one.pool, `a pool's name`)
  checkText(subject, `${path}.balancer`, one.balancer)
}

function checkReading(subject: string, one: unknown, i: number): void {
  if (!isObject(one)) refuse(subject, `snapshot.readings[${i}]`, one, 'a reading')
  const { ref, present, scopes } = one
  if (
    !isObject(ref) ||
    typeof ref.pool !== 'string' ||
    typeof ref.member !== 'string' ||
    !isTextOrNone(ref.balancer)
  ) {
    refuse(subject, `snapshot.readings[${i}].ref`, ref, 'the names of a pool and a member')
  }
  if (present === false) return
  if (present !== true) refuse(subject, `snapshot.readings[${i}].present`, present, 'true or false')
  if (!isPresent(one)) explain(subject, one, `snapshot.readings[${i}]`)
  if (!Array.isArray(scopes))
    refuse(subject, `snapshot.readings[${i}].scopes`, scopes, 'a list of processes')
  for (let n = 0; n < scopes.length; n++) {
    if (!isScope(scopes[n])) {
      const path = `snapshot.readings[${i}].scopes[${n}]`
      refuse(subject, path, scopes[n], 'a process with a known state and whole counts from 0')
    }
  }
}

type Loose = Readonly<Record<string, unknown>>

function isPresent(one: Loose): boolean {
  const { identity, own, serves, health, address, port, weight, inherited, maint } = one
  return (
    typeof identity === 'string' &&
    isWord(own, OWN) &&
    typeof serves === 'boolean' &&
    isWord(health, HEALTH) &&
    isTextOrNone(address) &&
    (port === undefined || isPortOrZero(port)) &&
    (weight === undefined || isAmount(weight)) &&
    (inherited === undefined || isWord(inherited, STATES)) &&
    (maint === undefined || isWord(maint, MAINT))
  )
}

/** What is wrong with a reading that {@link isPresent} refused. */
function explain(subject: string, one: Loose, path: string): void {
  const { identity, own, serves, address, port, weight } = one
  if (typeof identity !== 'string') refuse(subject, `${path}.identity`, identity, 'a text')
  if (own === undefined) refuse(subject, `${path}.own`, own, `an admin state, or 'unknown'`)
  checkWord(subject, `${path}.own`, own, OWN)
  if (typeof serves !== 'boolean') refuse(subject, `${path}.serves`, serves, 'true or false')
  if (one.health === undefined) refuse(subject, `${path}.health`, undefined, `a health word`)
  checkWord(subject, `${path}.health`, one.health, HEALTH)
  if (!isTextOrNone(address)) refuse(subject, `${path}.address`, address, 'a text')
  if (port !== undefined && !isPortOrZero(port))
    refuse(subject, `${path}.port`, port, 'a port from 1 to 65535, or 0 for none')
  if (weight !== undefined && !isAmount(weight))
    refuse(subject, `${path}.weight`, weight, AN_AMOUNT)
  checkWord(subject, `${path}.inherited`, one.inherited, STATES)
  checkWord(subject, `${path}.maint`, one.maint, MAINT)
}

function isScope(one: unknown): boolean {
  if (!isObject(one)) return false
  const { state, active, queued } = one
  return isWord(state, SCOPE) && (state !== 'read' || (isAmount(active) && isAmount(queued)))
}

const STATES: readonly string[] = ['ready', 'drain', 'maint']
const OWN: readonly string[] = [...STATES, 'unknown']
const HEALTH: readonly string[] = ['up', 'down', 'unchecked', 'unknown']
const MAINT: readonly string[] = ['gentle', 'cuts', 'unknown', 'none']
const SCOPE: readonly string[] = ['read', 'unread', 'ended']

function isWord(value: unknown, words: readonly unknown[]): boolean {
  return words.includes(value)
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

/** HAProxy says 0 of a server that takes the client's port. */
function isPortOrZero(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535
}
