import type { CallContext } from '../../../provider/contract.js'
import { argsOf, pathOf, rowsOf, type Subject } from '../codec/nitro.js'
import type { Entry } from '../codec/rows.js'
import type { NitroSession } from '../session/session.js'

/**
 * The virtual servers that members and services are bound to, each of them once.
 *
 * `servicegroupbindings` and `svcbindings` have a row of the group or the service itself, without
 * `vservername`, and one for each virtual server (NITRO 10.5 to 14.1).
 */
export async function virtualServers(
  session: NitroSession,
  entries: readonly Entry[],
  ctx: CallContext,
): Promise<readonly string[]> {
  const owners = new Map(entries.map(({ subject }) => [ownerOf(subject).join('\0'), subject]))
  const found = await Promise.all(
    [...owners.values()].map((subject) => boundTo(session, subject, ctx)),
  )
  return [...new Set(found.flat())].sort()
}

function ownerOf(subject: Subject): readonly [type: string, key: string, name: string] {
  return subject.kind === 'service'
    ? ['svcbindings', 'servicename', subject.name]
    : ['servicegroupbindings', 'servicegroupname', subject.group]
}

async function boundTo(
  session: NitroSession,
  subject: Subject,
  ctx: CallContext,
): Promise<readonly string[]> {
  const [type, key, name] = ownerOf(subject)
  const query = argsOf('args', { [key]: name })
  const rows = rowsOf(await session.get(pathOf('config', type, undefined, query), ctx), type)
  return rows.map((row) => row.at('vservername').word() ?? '').filter((one) => one !== '')
}
