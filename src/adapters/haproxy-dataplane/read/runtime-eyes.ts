import { isIP } from '../../../provider/builtins.js'
import type {
  CallContext,
  Capabilities,
  DrainableProvider,
  MemberRef,
  PresentReading,
  Reading,
  Snapshot,
} from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { PROVIDER } from '../session/session.js'

/**
 * A provider over HAProxy's Runtime API, with the master's socket: it sees the processes that a reload
 * replaced, which the Data Plane API does not. It only looks; changes are made through the API.
 */
export class RuntimeEyes {
  readonly #runtime: DrainableProvider

  constructor(runtime: DrainableProvider) {
    this.#runtime = runtime
  }

  /** What it says of its counts: the weaker of both words stands. */
  async describe(own: Capabilities, ctx: CallContext): Promise<Capabilities> {
    const { capabilities } = await this.#runtime.describe(ctx)
    return {
      ...own,
      blind: Math.max(own.blind, capabilities.blind),
      freshness: Math.max(own.freshness, capabilities.freshness),
    }
  }

  /**
   * The same look with the processes that the Runtime API lists.
   *
   * @returns undefined where HAProxy was reloaded between the two looks: a state of the process before
   * beside the counts of the one after it would read as if another client had changed it
   * @throws `CONFLICT` where the two don't show the same servers
   */
  async see(
    snapshot: Snapshot,
    refs: readonly MemberRef[] | 'all',
    ctx: CallContext,
  ): Promise<Snapshot | undefined> {
    const { readings, ended } = await this.#runtime.observe(refs, ctx)
    const byKey = new Map(readings.map((reading) => [refKey(reading.ref), reading]))
    const reloaded = snapshot.readings.some((mine) => {
      const theirs = byKey.get(refKey(mine.ref))
      return theirs !== undefined && !isSameProcess(mine, theirs)
    })
    if (reloaded) return undefined
    return {
      ...snapshot,
      readings: snapshot.readings.map((mine) => this.#merged(mine, byKey.get(refKey(mine.ref)))),
      ...(ended === undefined ? {} : { ended }),
    }
  }

  #merged(mine: Reading, theirs: Reading | undefined): Reading {
    if (theirs === undefined || theirs.present !== mine.present) {
      throw this.#differs(mine, theirs?.present === true ? 'there' : 'not there', true)
    }
    if (!mine.present || !theirs.present) return { ...mine, scopes: theirs.scopes }
    if (!isSame(mine, theirs)) {
      throw this.#differs(mine, `at ${theirs.address ?? ''} port ${theirs.port ?? ''}`, false)
    }
    const { scopes, sealed, unverified } = theirs
    return {
      ...mine,
      scopes,
      ...(sealed === false ? { sealed } : {}),
      ...(unverified === undefined ? {} : { unverified }),
    }
  }

  /** @param passing - whether a reload between the two looks can be the reason */
  #differs(mine: Reading, seen: string, passing: boolean): DrainableError {
    const { ref } = mine
    const at = mine.present ? `at ${mine.address ?? ''} port ${mine.port ?? ''}` : 'not there'
    const words = `${formatRef(ref)} is ${at} for the Data Plane API, and ${seen} for ${this.#runtime.instance}: the option runtime must be the same HAProxy`
    return new DrainableError('CONFLICT', words, { provider: PROVIDER, ref, retryable: passing })
  }
}

/** Whether both were answered by one process, as far as they name it: by node and pid, then by more. */
function isSameProcess(mine: Reading, theirs: Reading): boolean {
  const named = theirs.scopes.filter(({ old, incarnation }) => old !== true && incarnation !== '')
  const current = mine.scopes.find(({ state }) => state === 'read')
  if (current === undefined) return true
  const [name = ''] = current.incarnation.split('#')
  const node = name.slice(0, name.lastIndexOf('/') + 1)
  const others = named.filter((scope) => scope.incarnation.startsWith(node))
  return others.length === 0 || others.some((one) => one.incarnation.startsWith(`${name}/`))
}

/** By address, where both know one. */
function isSame(mine: PresentReading, theirs: PresentReading): boolean {
  const [one = '', other = ''] = [mine.address, theirs.address]
  if (isIP(one) === 0 || isIP(other) === 0) return true
  return one === other && mine.port === theirs.port
}
