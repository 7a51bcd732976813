import { listed } from '../../../provider/quote.js'
import type { MemberRef } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Settings } from '../options.js'
import type { NitroSession } from '../session/session.js'
import type { Found } from './pool.js'

/** Changes in one request. */
const LIST = 10
/** Requests of the looks of a drain, beside its changes. */
const LOOKS = 10
/** A member without work goes out of service within a second or two, and the rule of idle takes three. */
const BY_ITSELF = 5_000
/** Samples that have to be as far apart as statistics repeat themselves. */
const SAMPLES = 2

/** What was found at an address. */
export interface Hit {
  readonly ref: MemberRef
  readonly found: Found
}

/** What the refs found at an address hit, and how long that takes, by ref. */
export function planOf(
  hits: readonly Hit[],
  session: NitroSession,
  settings: Settings,
): ReadonlyMap<string, readonly string[]> {
  const time = timeOf(hits.length, session, settings)
  return new Map(
    hits.map(({ ref, found: { entry, vservers } }) => {
      const kind = entry.subject.kind === 'service' ? 'service' : 'member of a service group'
      const one = `a ${kind}, one of ${hits.length} that are changed one by one`
      const front =
        vservers === undefined
          ? ['which virtual servers are in front could not be read']
          : listed('virtual servers in front', vservers)
      return [refKey(ref), [one, ...front, time]]
    }),
  )
}

/** Without traffic. */
function timeOf(changes: number, { spending }: NitroSession, { freshness }: Settings): string {
  const cost = spending.last
  const lists = Math.ceil(changes / LIST)
  const least = BY_ITSELF + (2 * lists + LOOKS) * cost
  const most = least + SAMPLES * freshness
  const whole = (ms: number): string => formatDuration(Math.ceil(ms / 1_000) * 1_000)
  return `without traffic it takes about ${whole(least)} to be proved idle, and up to ${whole(most)} where a member does not go OUT OF SERVICE by itself (${changes} ${changes === 1 ? 'change' : 'changes'} in ${lists} ${lists === 1 ? 'list' : 'lists'}, a request ${formatDuration(Math.round(cost))})`
}
