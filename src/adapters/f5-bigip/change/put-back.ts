import type { AdminState, CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { parseNode, toWords } from '../codec/members.js'
import { memberPath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import type { Part, Place } from './places.js'
import { PROVIDER } from '../session/session.js'
import { writeOne } from './writes.js'

/** A template that is put back takes what it made along, so that is put back after it. */
const ROUNDS = 2

/**
 * Puts a place back to the state it was found in, after a change of it was refused elsewhere. What
 * another client made of it meanwhile is left alone.
 *
 * @param wished - the state that the change wrote
 * @returns why something of the change is left; undefined where nothing is
 */
export async function putBack(
  place: Place,
  wished: AdminState | 'unknown',
  ctx: CallContext,
): Promise<string | undefined> {
  const ours = new Set([wished])
  try {
    for (let round = 1; ; round += 1) {
      const moved = await movedParts(place, ours, ctx)
      if (moved.length === 0) return undefined
      if (moved.some(({ own }) => own === 'maint')) return 'maint may cut what has come since'
      if (round > ROUNDS) return 'it does not show'
      for (const { path, own, native } of moved) {
        if (own === 'unknown') continue
        ours.add(own)
        const words = toWords(own, native)
        const { device, pool } = place
        const written = await writeOne({ device, path, words, pool }, ctx)
        if (written.status !== 'applied') return written.error.message
      }
    }
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    return error.message
  }
}

/** Parts that are in one of these states, and were in another when they were found. */
async function movedParts(
  place: Place,
  states: ReadonlySet<AdminState | 'unknown'>,
  ctx: CallContext,
): Promise<readonly Part[]> {
  const now = await readStates(place, ctx)
  return place.parts.filter(({ path, own }) => {
    const found = now.get(path)
    return found !== undefined && found !== own && states.has(found)
  })
}

async function readStates(
  { device, pool, parts }: Place,
  ctx: CallContext,
): Promise<ReadonlyMap<string, AdminState | 'unknown'>> {
  if (pool !== undefined) {
    const rows = (await device.listMembers(pool, ctx))?.rows
    if (rows === undefined) throw notThere(pool, device)
    return new Map(rows.map((row) => [memberPath(pool, row.fullPath), row.own]))
  }
  const states = new Map<string, AdminState | 'unknown'>()
  for (const { path } of parts) {
    const node = await device.session.get(path, ctx)
    if (node === undefined) throw notThere(path, device)
    states.set(path, parseNode(node).own)
  }
  return states
}

/** While the configuration loads, everything is said not to be there. */
function notThere(what: string, { host }: Device): DrainableError {
  return new DrainableError('CONFLICT', `${what} is not there at ${host}`, { provider: PROVIDER })
}
