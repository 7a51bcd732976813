/**
 * Errorcodes by what they ask of us. Matched on the code, never on the text: the appliance puts the
 * name of the entity behind its stock message, and the HTTP status differs from build to build.
 */
import { DrainableError, type ErrorCode } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import type { NitroReply } from './nitro.js'

/** What a reply asks of us. */
export type ReplyClass =
  | 'ok'
  /** The session is over: log in again, once. */
  | 'relogin'
  | 'credentials'
  | 'rights'
  | 'absent'
  /** Not carried out, may be later. */
  | 'busy'
  /** Carried out or not: only a look can tell. */
  | 'open'
  /** Carried out here, the other node did not hear of it. */
  | 'applied-here'
  | 'wrong-node'
  | 'refused'
  /** No reply of NITRO at all. */
  | 'unreadable'

const CODES: Readonly<
  Record<Exclude<ReplyClass, 'ok' | 'refused' | 'unreadable'>, readonly number[]>
> = {
  relogin: [352, 444, 451, 472, 1026, 1027],
  credentials: [354, 355, 1025, 1046, 1244],
  rights: [269, 340, 371, 2138],
  absent: [258, 344, 351, 461, 462, 463],
  busy: [268, 272, 291, 292, 366, 445, 446, 447, 603],
  open: [293, 316, 357, 459, 1187, 1196, 1198, 2481],
  'applied-here': [347, 349, 358, 457, 458],
  'wrong-node': [368, 1028, 1044, 1203],
}

const BY_CODE: ReadonlyMap<number, ReplyClass> = new Map(
  Object.entries(CODES).flatMap(([name, codes]) =>
    codes.map((code) => [code, name as ReplyClass] as const),
  ),
)

/**
 * Sorts a reply. A warning counts only where it says that this is the wrong node; a failure stays
 * one whatever it calls itself.
 */
export function classify(reply: NitroReply): ReplyClass {
  const known = BY_CODE.get(reply.errorcode)
  if (isWarning(reply)) {
    return known === 'wrong-node' || known === 'applied-here' ? known : 'ok'
  }
  if (known !== undefined) return known
  if (reply.errorcode === 0 && reply.status < 400) return reply.readable ? 'ok' : 'unreadable'
  if (reply.readable && reply.errorcode > 0) {
    if (reply.status === 404) return 'absent'
    return BY_STATUS[reply.status] === 'busy' ? 'busy' : 'refused'
  }
  return BY_STATUS[reply.status] ?? 'unreadable'
}

/** Whether it was not carried out, and may be later. */
export function isBusy(reply: NitroReply): boolean {
  return classify(reply) === 'busy'
}

/** Whether it was carried out, with something to say about it. */
export function isWarning({ severity, status }: NitroReply): boolean {
  return (severity === 'WARNING' && status < 400) || status === 209
}

/** A reply without an errorcode: proxies, a server starting up. */
const BY_STATUS: Readonly<Record<number, ReplyClass>> = {
  401: 'relogin',
  403: 'rights',
  423: 'busy',
  429: 'busy',
  503: 'busy',
}

/** Code, retryable and advice by class. */
const ERRORS: Readonly<
  Record<
    ReplyClass,
    { readonly code: ErrorCode; readonly retryable?: boolean; readonly advice?: string }
  >
> = {
  ok: { code: 'MALFORMED_REPLY' },
  relogin: { code: 'UNAUTHENTICATED', advice: 'the session ended again right after a new login' },
  credentials: { code: 'UNAUTHENTICATED', advice: 'check username and password' },
  rights: {
    code: 'FORBIDDEN',
    advice: 'bind a command policy that allows it to this user',
  },
  absent: { code: 'NOT_FOUND' },
  busy: { code: 'UNREACHABLE', advice: 'the appliance is busy, try again later' },
  open: { code: 'CALL_TIMEOUT', advice: 'it may have been carried out' },
  'applied-here': { code: 'CONFLICT' },
  'wrong-node': {
    code: 'CONFLICT',
    advice: 'give the addresses of both nodes, or a SNIP with management access',
  },
  refused: { code: 'REJECTED', retryable: false },
  unreadable: {
    code: 'MALFORMED_REPLY',
    retryable: true,
    advice: 'a proxy, or a server starting up?',
  },
}

/** A reply that is no success, as an error. */
export function toError(what: string, reply: NitroReply, as?: ReplyClass): DrainableError {
  // The node of a cluster never becomes its address, unlike a secondary, which may become primary.
  const kind = NODE_OF_CLUSTER.has(reply.errorcode) ? 'refused' : (as ?? classify(reply))
  const { code, retryable, advice } = ERRORS[kind]
  const number =
    reply.errorcode > 0 ? `errorcode ${reply.errorcode}` : `HTTP status ${reply.status}`
  const said = reply.message === '' ? number : `'${quote(reply.message)}' (${number})`
  const hint = SPECIAL[reply.errorcode] ?? advice
  return new DrainableError(code, `${what}: ${said}${hint === undefined ? '' : `, ${hint}`}`, {
    provider: 'citrix-adc',
    ...(retryable === undefined ? {} : { retryable }),
  })
}

const NODE_OF_CLUSTER: ReadonlySet<number> = new Set([1044, 1203])

/** Codes that have a better advice than their class. */
const SPECIAL: Readonly<Record<number, string>> = {
  1044: 'give the cluster address (CLIP) in place of a node',
  1203: 'give the cluster address (CLIP) in place of a node',
  1046: 'the password must be changed on the appliance first',
  1219: 'the appliance allows no session of that length, set sessionTimeout',
  1244: "header authentication is switched off there, use auth: 'session'",
  2004: 'GSLB services have no graceful disable',
  2755: 'check the partition option',
  2774: 'set the partition option',
}
