import type { RollEvent } from '../../fleet/roll/events.js'
import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { MemberReport, RollReport, ServerReport } from '../../provider/report.js'
import { eventWords } from '../words/event.js'
import { LaneRecord, type Lane } from './lane.js'

/** A member with how its drain ended, if it did. */
export interface MemberLane extends Lane {
  readonly report?: MemberReport
}

/** Lanes with one axis of time: all of a drain, or those of one server of a roll. */
export interface LaneGroup {
  readonly server?: ServerReport
  readonly lanes: readonly MemberLane[]
  readonly from: number
  readonly to: number
}

/** What happened in a drain or a roll. */
export interface Timeline {
  readonly from: number
  readonly to: number
  readonly groups: readonly LaneGroup[]
}

/** Records the events of a drain or a roll. */
export class TimelineRecorder {
  readonly #lanes = new Map<string, LaneRecord>()
  readonly #reports = new Map<string, MemberReport>()
  #roll: RollReport | undefined
  /** A roll says by itself for which server COMMAND runs. */
  #says = false

  event(event: RollEvent): void {
    const at = Date.parse(event.at)
    switch (event.type) {
      case 'end':
        for (const report of event.report.members) this.#end(report, at)
        return
      case 'roll-end':
        this.#roll = event.report
        return
      case 'batch':
        for (const ref of event.refs) this.#lane(ref, at).reach(at)
        return
      case 'load':
        this.#lane(event.ref, at).look(event)
        return
      case 'phase':
        this.#lane(event.ref, at).phase(at, event.from, event.to)
        return
      case 'act':
        this.#says = true
        for (const ref of event.refs) this.#lane(ref, at).commandBegan(at)
        return
      default:
        this.#happened(event, at)
    }
  }

  /** COMMAND runs while every member of the drain is held. */
  commandBegan(at: number): void {
    if (!this.#says) for (const lane of this.#lanes.values()) lane.commandBegan(at)
  }

  commandEnded(at: number): void {
    if (!this.#says) for (const lane of this.#lanes.values()) lane.commandEnded(at)
  }

  /** Something that happened to one member, or to all. */
  mark(at: number, text: string, ref?: MemberRef): void {
    const lanes = ref === undefined ? [...this.#lanes.values()] : [this.#lane(ref, at)]
    for (const lane of lanes) lane.mark(at, text)
  }

  timeline(): Timeline {
    const lanes = new Map(
      [...this.#lanes].map(([key, record]): [string, MemberLane] => {
        const report = this.#reports.get(key)
        return [key, { ...record.lane(), ...(report === undefined ? {} : { report }) }]
      }),
    )
    const groups = this.#groups(lanes)
    const spans = groups.filter((group) => group.lanes.length > 0)
    return {
      from: Math.min(...spans.map(({ from }) => from)),
      to: Math.max(...spans.map(({ to }) => to)),
      groups,
    }
  }

  /** Something happened to a member, or to each member of a server. */
  #happened(
    event: Exclude<RollEvent, { readonly type: 'batch' | 'end' | 'roll-end' }>,
    at: number,
  ): void {
    const isServers = 'refs' in event
    for (const ref of isServers ? event.refs : [event.ref]) {
      const lane = this.#lane(ref, at)
      if (isServers) lane.commandEnded(at)
      if (event.type === 'ready' || event.type === 'postponed') lane.opened(at)
      lane.mark(at, eventWords(event) ?? event.type)
    }
  }

  /** The end of a drain is what the page is about; that of the undo after it is an event. */
  #end(report: MemberReport, at: number): void {
    const key = refKey(report.ref)
    const lane = this.#lane(report.ref, at)
    lane.reach(at)
    if (report.outcome === 'restored' && this.#reports.has(key)) {
      lane.mark(at, 'made ready again')
      lane.opened(at)
      return
    }
    this.#reports.set(key, report)
    if (report.outcome !== 'idle' && report.outcome !== 'removed')
      lane.mark(at, `end of the drain: ${report.outcome}`)
  }

  /** One for each server of a roll, and one for what belongs to none. */
  #groups(lanes: ReadonlyMap<string, MemberLane>): readonly LaneGroup[] {
    const left = new Map(lanes)
    const servers = (this.#roll?.servers ?? []).map((server) => {
      const own = server.refs.flatMap((ref) => left.get(refKey(ref)) ?? [])
      for (const ref of server.refs) left.delete(refKey(ref))
      return toGroup(own, server)
    })
    return left.size === 0 ? servers : [...servers, toGroup([...left.values()])]
  }

  #lane(ref: MemberRef, at: number): LaneRecord {
    const key = refKey(ref)
    const known = this.#lanes.get(key)
    if (known !== undefined) return known
    const lane = new LaneRecord(ref, at)
    this.#lanes.set(key, lane)
    return lane
  }
}

function toGroup(lanes: readonly MemberLane[], server?: ServerReport): LaneGroup {
  return {
    lanes,
    ...(server === undefined ? {} : { server }),
    from: Math.min(...lanes.map(({ from }) => from)),
    to: Math.max(...lanes.map(({ to }) => to)),
  }
}
