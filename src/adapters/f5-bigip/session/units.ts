import { settledWithin } from '../../../provider/abort.js'
import type { CallContext } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { caught } from '../../../kit/errors.js'
import { Silent, type Silence } from '../../../kit/retry.js'
import { DrainableError } from '../../../provider/error.js'
import { isSameMachine, type PeerRow } from '../codec/device.js'
import type { Device } from './device.js'
import { PROVIDER } from './session.js'

/** How long a unit is waited for that another one can answer for, in milliseconds. */
export const PEER_LIMIT = 1_000

/** A unit that could not be read, and that may hold work. */
export interface Failed {
  readonly device: Device
  readonly error: DrainableError
}

/** A unit that does not answer, and that an active one calls standby: it passes no traffic. */
export interface Away {
  readonly device: Device
  /** What to tell a person. */
  readonly away: string
}

/** What a unit that was read says. */
interface Answer {
  readonly device: Device
  readonly active: boolean
}

/**
 * The units of a device group, two to eight. A standby whose management hangs, as during an upgrade, is asked apart: with a
 * short limit and less and less often, as long as a unit that passes traffic says that it passes none.
 * A unit that is or was active, or whose role is not known, is waited for.
 */
export class Units {
  readonly #devices: readonly Device[]
  readonly #absent = new Silent<Device>()
  /** Every device of the trust domain, by the unit that listed it; null where it does not tell. */
  readonly #trusts = new Map<Device, readonly PeerRow[] | null>()

  constructor(devices: readonly Device[]) {
    this.#devices = devices
  }

  /** Asks every unit, all at once. */
  async look<V extends Answer>(
    ask: (device: Device, ctx: CallContext) => Promise<V>,
    ctx: CallContext,
  ): Promise<readonly (V | Failed | Away)[]> {
    const one = async (device: Device, each: CallContext): Promise<V | Failed> => {
      return caught(
        each,
        () => ask(device, each),
        (error) => {
          device.role.doubt()
          return { device, error }
        },
      )
    }
    const skipped = this.#devices.filter((device) => this.#absent.isLeft(device, ctx))
    const asked = this.#devices.filter((device) => !skipped.includes(device))
    const answers = new Map(await this.#ask(asked, skipped, one, ctx))
    const missing = skipped.filter((device) => !answers.has(device))
    // Nothing vouches for them any more: a failover may have made one of them active.
    for (const entry of await this.#ask(missing, [], one, ctx)) answers.set(...entry)
    const all = this.#devices.flatMap((device) => answers.get(device) ?? [])
    if (this.#devices.length > 1) await this.#checkKinship(all.filter(isRead), ctx)
    return all
  }

  async #ask<V extends Answer>(
    devices: readonly Device[],
    skipped: readonly Device[],
    ask: (device: Device, ctx: CallContext) => Promise<V | Failed>,
    ctx: CallContext,
  ): Promise<ReadonlyMap<Device, V | Failed | Away>> {
    const { clock, signal } = ctx
    const answers = new Map<Device, V | Failed | Away>()
    const stop = new AbortController()
    const each = { ...ctx, signal: AbortSignal.any([signal, stop.signal]) }
    const waiting = new Map(
      devices.map((device) => {
        const asked = ask(device, each).then((answer) => {
          answers.set(device, answer)
          waiting.delete(device)
        })
        return [device, asked] as const
      }),
    )
    try {
      await settledWithin(Promise.all(waiting.values()), clock, PEER_LIMIT)
      // Of three units one that was active may answer after the one that is: each answer can be the one that settles it.
      for (;;) {
        const unread = (): readonly Device[] => [...waiting.keys(), ...skipped]
        const by = await this.#vouched(answers, unread(), ctx)
        if (by !== undefined) this.#leaveOut(answers, unread(), by, ctx)
        if (by !== undefined || waiting.size === 0) break
        await Promise.race(waiting.values())
      }
    } finally {
      stop.abort(new Error('no call waits for it any more'))
      await Promise.allSettled(waiting.values())
    }
    signal.throwIfAborted()
    for (const [device, answer] of answers) if (isRead(answer)) this.#absent.end(device)
    return answers
  }

  /** The unit that passes traffic and says that the others that are not read pass none. */
  async #vouched<V extends Answer>(
    answers: ReadonlyMap<Device, V | Failed | Away>,
    waiting: readonly Device[],
    ctx: CallContext,
  ): Promise<Device | undefined> {
    const silent = new Set(waiting)
    for (const [device, answer] of answers) if ('error' in answer) silent.add(device)
    const active = [...answers.values()].filter(isRead).filter(isActive)
    if (silent.size === 0 || active.length === 0) return undefined
    // What was active has held work: it is waited for.
    if ([...silent].some((device) => device.role.everActive)) return undefined
    const lists: (readonly PeerRow[])[] = []
    for (const { device } of active) {
      const peers = await peersOf(device, ctx)
      if (peers === undefined) return undefined
      lists.push(peers)
    }
    const read = new Set(lists.flat().flatMap(({ self, name }) => (self ? name : [])))
    const idle = lists.every(
      (peers) =>
        peers.length >= this.#devices.length &&
        peers.every(({ name, role }) => read.has(name) || passesNone(role)),
    )
    return idle ? active[0]?.device : undefined
  }

  #leaveOut<V extends Answer>(
    answers: Map<Device, V | Failed | Away>,
    waiting: readonly Device[],
    by: Device,
    ctx: CallContext,
  ): void {
    const failed = [...answers].flatMap(([device, answer]) =>
      'error' in answer ? [[device, answer.error.message] as const] : [],
    )
    const silent = waiting.map((device) => [device, 'it does not answer'] as const)
    for (const [device, why] of [...failed, ...silent]) {
      const silence = this.#absent.note(device, why, ctx)
      answers.set(device, { device, away: awayWords(device, by, silence, ctx.clock.now()) })
    }
  }

  /**
   * Units that do not know each other are two balancers, and one unit by two addresses is no second one.
   *
   * @throws `INVALID_OPTIONS`
   */
  async #checkKinship(
    read: readonly { readonly device: Device }[],
    ctx: CallContext,
  ): Promise<void> {
    if (read.length < 2) return
    for (const { device } of read) {
      if (!this.#trusts.has(device)) this.#trusts.set(device, (await peersOf(device, ctx)) ?? null)
    }
    const known = read.flatMap(({ device }) => {
      const peers = this.#trusts.get(device)
      const self = peers?.find((peer) => peer.self)
      return peers && self !== undefined ? [{ device, self, peers }] : []
    })
    for (const one of known) {
      const others = known.filter(({ device }) => device !== one.device)
      const twin = others.find(({ self }) => isSameMachine(one.self, self))
      const stranger = others.find(
        ({ self }) => !one.peers.some((peer) => isSameMachine(peer, self)),
      )
      const odd = twin ?? stranger
      if (odd === undefined) continue
      for (const { device } of known) this.#trusts.delete(device)
      const [host, other] = [one.device.host, odd.device.host]
      const words =
        odd === twin
          ? `${host} and ${other} are one unit (${one.self.name}): url lists each unit once, by its management address`
          : `${host} (${one.self.name}) and ${other} (${odd.self.name}) are not units of one device group: url lists the units of one group, make a provider for each and join them with combineProviders()`
      throw new DrainableError('INVALID_OPTIONS', `url: ${words}`, { provider: PROVIDER })
    }
  }
}

function peersOf(device: Device, ctx: CallContext): Promise<readonly PeerRow[] | undefined> {
  return caught(
    ctx,
    () => device.readPeers(ctx),
    () => undefined,
  )
}

/** By heartbeat: one that is called offline may just not be heard. */
function passesNone(role: PeerRow['role']): boolean {
  return role === 'standby' || role === 'forced-offline'
}

function isRead<V extends { readonly device: Device }>(answer: V | Failed | Away): answer is V {
  return !('error' in answer) && !('away' in answer)
}

function isActive(answer: { readonly device: Device; readonly active?: boolean }): boolean {
  return answer.active === true
}

function awayWords(device: Device, by: Device, { since, why }: Silence, now: number): string {
  const age = formatDuration(Math.max(0, Math.round(now - since)))
  return `${device.host} is standby, as ${by.host} says, and has not answered for ${age} (${why}): it passes no traffic, so the drain does not wait for it; it is not known whether it has taken a change`
}
