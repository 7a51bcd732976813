/**
 * What an answer means, whatever its status.
 *
 * The layers of a device answer in their own ways: the web server in HTML, the REST framework with
 * `restOperationId`, the configuration service with `errorStack`. A 404 is absence only in the words
 * of the configuration service, and even those are sent for every object while it loads. A 401 means
 * bad credentials, or rights (`Authorization failed: user=...`), or nothing at all. A 200 may carry
 * an error in its body.
 */
import { isCut, isObject, parseExact } from '../../../kit/json.js'
import type { ErrorCode } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'

/** What an answer can mean that is no success, and the error that it is. */
export const TROUBLES = {
  /** No such object, if the device is ready. */
  absent: { code: 'NOT_FOUND', says: '' },
  /** Not now: the control plane starts, restarts or is busy. */
  later: { code: 'CONFLICT', says: ', the control plane is busy or restarting' },
  /** No such path: in this release, or in a REST framework that still starts. */
  unregistered: { code: 'CONFLICT', says: ', the control plane is busy or restarting' },
  /** A layer gave up waiting for the one below it, which may still carry the request out. */
  open: {
    code: 'CALL_TIMEOUT',
    says: ', the device gave up waiting for itself and may still do it',
  },
  /** Credentials or token not taken. */
  unauthenticated: { code: 'UNAUTHENTICATED', says: ', check username and password' },
  /** Credentials not seen, although they were sent: no word about them. */
  unseen: {
    code: 'CONFLICT',
    says: ', although credentials were sent; a device that is busy says so now and then',
  },
  /** Taken, but without the right to do this. */
  forbidden: {
    code: 'FORBIDDEN',
    says: ', the user {user} needs the role for it on this partition',
  },
  /** Login refused because the user has too many tokens. They run out. */
  'too-many-tokens': {
    code: 'REJECTED',
    says: ", drop unused tokens of the user or set auth: 'basic'",
    retryable: true,
  },
  /** It is there already. */
  exists: { code: 'CONFLICT', says: '', retryable: false },
  /** No, and asking again does not help. */
  refused: { code: 'REJECTED', says: '' },
  /** JSON that ends in its middle. */
  cut: { code: 'CONNECTION_LOST', says: ', the answer was cut off' },
  /** Neither JSON nor an error. */
  garbage: { code: 'MALFORMED_REPLY', says: ', expected JSON' },
} as const satisfies Readonly<
  Record<string, { readonly code: ErrorCode; readonly says: string; readonly retryable?: boolean }>
>

/** Answers that say nothing of what became of a change. */
export const LEFT_OPEN: ReadonlySet<Meaning['kind']> = new Set([
  'later',
  'unregistered',
  'open',
  'garbage',
])

export interface Trouble {
  readonly kind: keyof typeof TROUBLES
  readonly message: string
}

export type Meaning = { readonly kind: 'ok'; readonly json: unknown } | Trouble

const BUSY =
  /connection to mcpd has been lost|active asynchronous task|operation in progress|restarting|roleEval may not be null|try again/i

/** Of the REST framework (400 `java.util.concurrent.TimeoutException`) and of the web server in front of it. */
const GAVE_UP = /\bTimeoutException\b|AsyncContext timeout/i

const NOT_THERE = /no user authentication header/i

/**
 * @param change - of what changes something: a web server that restarts may redirect it to the login page
 */
// eslint-disable-next-line complexity -- the table of status codes
export function classify(status: number, text: string, change = false): Meaning {
  const json = parse(text)
  const body = isObject(json) ? json : undefined
  const inner = typeof body?.['code'] === 'number' ? body['code'] : undefined
  const code = status < 400 && inner !== undefined && inner >= 400 ? inner : status
  const message =
    typeof body?.['message'] === 'string' ? body['message'].slice(0, PAGE) : plain(text)
  if (code < 300) {
    if (json !== undefined || text.trim() === '') return { kind: 'ok', json }
    // Its last part can be half a secret.
    return isCut(text)
      ? { kind: 'cut', message: '(not shown)' }
      : { kind: 'garbage', message: plain(text) }
  }
  if (code < 400) {
    const kind = change ? 'later' : 'refused'
    return { kind, message: `redirects are not followed (${status})` }
  }
  if (GAVE_UP.test(text.slice(0, PAGE))) return { kind: 'open', message }
  switch (code) {
    case 401:
      if (NOT_THERE.test(message)) return { kind: 'unseen', message }
      return { kind: /failed: user=/i.test(message) ? 'forbidden' : 'unauthenticated', message }
    case 403:
      return { kind: 'forbidden', message }
    case 404:
      if (/not registered/i.test(message)) return { kind: 'unregistered', message }
      return { kind: body === undefined || BUSY.test(message) ? 'later' : 'absent', message }
    case 409:
      return { kind: BUSY.test(message) ? 'later' : 'exists', message }
    case 400:
      if (/maximum active login tokens/i.test(message)) return { kind: 'too-many-tokens', message }
      return { kind: BUSY.test(message) ? 'later' : 'refused', message }
    case 408:
    case 502:
    case 504:
      return { kind: 'open', message }
    case 423:
    case 429:
      return { kind: 'later', message }
    default:
      return { kind: code >= 500 || BUSY.test(message) ? 'later' : 'refused', message }
  }
}

function parse(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    return undefined
  }
}

/** As much of a page as is looked at: a title stands at its beginning. */
const PAGE = 4_096

/** HTML as one line of text, short enough for a message. */
function plain(text: string): string {
  const page = text.slice(0, PAGE)
  const from = page.search(/<title>/i)
  const to = page.indexOf('<', from + 1)
  const title = from < 0 ? '' : page.slice(from + '<title>'.length, to < 0 ? undefined : to).trim()
  return quote(title === '' ? page.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ') : title)
}
