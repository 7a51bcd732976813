import { until } from '../../../kit/until.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { refusal, SHOW_STREAM_LINES, shutdownSession, shutdownSessions } from '../codec/commands.js'
import type { ServerState } from '../codec/state.js'
import { type Channel, WorkerGone } from '../session/channel.js'
import type { OldChannel } from '../session/other-processes.js'
import { listStrays } from '../session/strays.js'
import { channelOf, type Of, type Tools } from './tools.js'

/** How long a cut can take to show in the counts, and the pause between two looks, in milliseconds. */
const SHOWS = { every: 20, within: 1_000 }

/** Cuts what is in flight, in every process that can be reached. */
export async function terminate(
  tools: Tools,
  { ref }: Of<'terminate'>,
  ctx: CallContext,
): Promise<{ status: 'applied'; terminated: number; atMost: boolean }> {
  const { point, process } = tools
  const channel = channelOf(tools)
  const wanted = new Map([[ref.pool, new Set([ref.member])]])
  const load = async (): Promise<number> => {
    const sight = await process.view.read(wanted, channel, ctx)
    return [...sight.members.values()][0]?.row.active ?? 0
  }
  const before = await load()
  const command = shutdownSessions(ref)
  const reply = before === 0 ? '' : await point.change(process, command, ctx)
  if (reply !== '') throw refusal(ref, command, reply)
  const hasStrays = process.strays.of(ref) > 0 || point.others.hasStrays(ref)
  const moved = hasStrays ? process.view.known(ref) : undefined
  let elsewhere = await cutStrays({ channel, replaced: undefined }, ref, moved, ctx)
  for (const other of point.oldChannels())
    elsewhere += await cutOld(channel, other, ref, moved, ctx)
  // Queued requests become active next: a lower count shows the cut, and the caller asks again for the rest.
  const isLower = async (): Promise<true | undefined> => (await load()) < before || undefined
  if (before > 0) await until(ctx, SHOWS, isLower)
  return { status: 'applied', terminated: before + elsewhere, atMost: before > 0 }
}

/**
 * Cuts in an old process: it refuses `shutdown sessions server` because its proxies are disabled, but single streams
 * can be cut.
 */
async function cutOld(
  serves: Channel,
  { channel, namesOf }: OldChannel,
  ref: MemberRef,
  moved: ServerState | undefined,
  ctx: CallContext,
): Promise<number> {
  try {
    const names = namesOf(ref)
    let count = 0
    for (const name of names.length === 0 ? [ref] : names)
      count += await cutStreams(channel, name, ctx)
    return count + (await cutStrays({ channel, replaced: { names, serves } }, ref, moved, ctx))
  } catch (error) {
    if (error instanceof WorkerGone) return 0
    throw error
  }
}

/** Cuts what is at its address and belongs to another server. */
async function cutStrays(
  at: Parameters<typeof listStrays>[2],
  ref: MemberRef,
  moved: ServerState | undefined,
  ctx: CallContext,
): Promise<number> {
  if (moved === undefined) return 0
  return cut((await listStrays(ref, moved, at, ctx)) ?? [], at.channel, ctx)
}

async function cutStreams(channel: Channel, ref: MemberRef, ctx: CallContext): Promise<number> {
  const {
    replies: [reply = ''],
  } = await channel.run([SHOW_STREAM_LINES], ctx)
  const pointers = reply
    .split('\n')
    .filter((line) => {
      const words = line.split(' ')
      return words.includes(`be=${ref.pool}`) && words.includes(`srv=${ref.member}`)
    })
    .map((line) => line.slice(0, line.indexOf(':')))
    .filter((pointer) => pointer.startsWith('0x'))
  return cut(pointers, channel, ctx)
}

async function cut(
  pointers: readonly string[],
  channel: Channel,
  ctx: CallContext,
): Promise<number> {
  if (pointers.length === 0) return 0
  const { replies } = await channel.run(pointers.map(shutdownSession), ctx)
  return replies.filter((text) => text === '').length
}
