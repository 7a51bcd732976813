import { until } from '../../../kit/until.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { refusal, SHOW_STREAM_LINES, shutdownSession, shutdownSessions } from '../codec/commands.js'
import { type Channel, WorkerGone } from '../session/channel.js'
import type { OldProcess } from '../session/other-processes.js'
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
  let elsewhere = await cut(await process.strays.list(ref, channel, ctx), channel, ctx)
  for (const old of point.oldProcesses()) elsewhere += await cutOld(old, ref, ctx)
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
  { process: { strays }, channel }: OldProcess,
  ref: MemberRef,
  ctx: CallContext,
): Promise<number> {
  try {
    const own = strays.isOwn(ref) ? await listOwn(ref, channel, ctx) : []
    return await cut([...own, ...(await strays.list(ref, channel, ctx))], channel, ctx)
  } catch (error) {
    if (error instanceof WorkerGone) return 0
    throw error
  }
}

/** The pointers of the streams of a server. */
async function listOwn(ref: MemberRef, channel: Channel, ctx: CallContext): Promise<string[]> {
  const { replies } = await channel.run([SHOW_STREAM_LINES], ctx)
  return (replies[0] ?? '')
    .split('\n')
    .filter((line) => {
      const words = line.split(' ')
      return words.includes(`be=${ref.pool}`) && words.includes(`srv=${ref.member}`)
    })
    .map((line) => line.slice(0, line.indexOf(':')))
    .filter((pointer) => pointer.startsWith('0x'))
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
