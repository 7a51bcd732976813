import type { CallContext } from '../../../provider/contract.js'
import type { Channel } from './channel.js'
import { checkDoor } from './door.js'
import type { Process } from './process.js'
import type { ProcessSight, Wanted } from '../read/read.js'
import { noteStreams } from './strays.js'

/** What one look is for. */
export interface Question {
  readonly wanted: Wanted | 'all'
  /** The servers that drains look at, also if the look is at everything. */
  readonly watched: Wanted
  /** The process that serves, and the way to it. */
  readonly current: Process
  readonly channel: Channel
}

/** Reads the counts of a process beside the one that serves. */
export async function look(
  process: Process,
  channel: Channel,
  { wanted, watched, current, channel: way }: Question,
  old: boolean,
  ctx: CallContext,
): Promise<ProcessSight> {
  const { view, renamed } = process
  const sight =
    wanted === 'all' ? await view.readAll(channel, ctx) : await view.read(wanted, channel, ctx)
  if (!old) return sight
  const serves = { scope: current.scope, view: current.view, channel: way }
  return renamed.follow(sight, watched, { view, channel }, serves, ctx)
}

/** The further checks of a replaced process, beside its counts. */
export async function checkOld(
  process: Process,
  sight: ProcessSight,
  { watched, current, channel: replacedBy }: Question,
  channel: Channel,
  ctx: CallContext,
): Promise<void> {
  await checkDoor(process, sight, channel, ctx)
  await noteStreams(process, sight, { watched, serves: current.view, replacedBy }, channel, ctx)
}

/** Whether nothing is in flight or queued there. */
export function isEmpty(sight: ProcessSight): boolean {
  return [...sight.members.values()].every(({ row }) => row.active + row.queued === 0)
}

/** Whether every member that was looked at has work. */
export function isBusy({ members }: ProcessSight): boolean {
  const rows = [...members.values()].map(({ row }) => row)
  return rows.length > 0 && rows.every(({ active, queued }) => active + queued > 0)
}
