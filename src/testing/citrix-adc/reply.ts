import type { HttpAnswer } from '../http/server.js'
import type { Plain } from './config.js'
import type { FakeFailure } from './options.js'

/** One answer of the appliance, before it becomes bytes. */
export interface Reply {
  readonly status: number
  /** Undefined: no bytes at all. */
  readonly body?: Plain | string
  readonly headers?: Readonly<Record<string, string>>
}

/** Stock texts by errorcode, with the HTTP status they come under. */
const ERRORS: Readonly<Record<number, readonly [status: number, text: string]>> = {
  257: [599, 'Operation not permitted'],
  258: [404, 'No such resource'],
  273: [409, 'Resource already exists'],
  278: [599, 'Invalid argument'],
  352: [401, 'Login is required'],
  354: [401, 'Invalid username or password'],
  444: [401, 'Session expired or killed. Please login again'],
  445: [599, 'Session limit exceeded'],
  446: [599, 'Connection limit to CFE exceeded'],
  603: [599, 'Configuration is being saved, please try again later'],
  1027: [401, 'Not logged in or connection timed out'],
  1075: [
    599,
    'Invalid name; names must begin with an alphanumeric character or underscore and must contain only alphanumerics, _, #, ., space, :, @, = or -',
  ],
  1092: [599, 'Arguments cannot both be specified'],
  1093: [599, 'Argument pre-requisite missing'],
  1095: [599, 'Required argument missing'],
  1097: [599, 'Invalid argument value'],
  1108: [599, 'Integer value exceeds maximum'],
  1109: [599, 'Integer value below minimum'],
  1203: [
    599,
    'Session is read-only; connect to the Cluster IP address to modify the configuration',
  ],
  1219: [
    599,
    'Invalid Timeout, it cannot be beyond admin configured value and should be between in the range of 300-86400',
  ],
  1232: [400, 'Invalid object name'],
  1233: [400, 'Invalid JSON input'],
  1234: [400, 'Invalid JSON data type'],
  1240: [400, 'Invalid nitro action or operation'],
  1244: [401, 'Authentication Failed: Use of Basic Authentication is Disabled.'],
  1335: [409, 'Server already exists'],
  2138: [403, 'Not authorized to execute this command'],
  2755: [599, 'Partition does not exist'],
  2774: [599, 'The specified entity is configured in some other partition.'],
}

/** What the appliance says no with. */
export class NitroError extends Error {
  readonly status: number
  readonly errorcode: number

  /** @param subject - comes in brackets after the stock text */
  constructor(errorcode: number, subject?: string, status?: number) {
    const [known, text] = ERRORS[errorcode] ?? [599, `Error ${errorcode}`]
    super(subject === undefined ? text : `${text} [${subject}]`)
    this.status = status ?? known
    this.errorcode = errorcode
  }

  toReply(): Reply {
    return {
      status: this.status,
      body: { errorcode: this.errorcode, message: this.message, severity: 'ERROR' },
    }
  }
}

/** Errorcode 0, with the rows under their type where there are any; the key is left out where there are none. */
export function done(rows?: Plain, status = 200): Reply {
  return { status, body: { errorcode: 0, message: 'Done', severity: 'NONE', ...rows } }
}

/** The appliance's own style: spaces between the outer members, slashes escaped. */
export function toBytes(body: unknown, withSeverity: boolean): string {
  if (body === undefined) return ''
  if (typeof body === 'string') return body
  if (!isPlain(body)) return JSON.stringify(body)
  const { severity, ...rest } = body
  const shown = withSeverity || severity === undefined ? body : rest
  const members = Object.entries(shown)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
  return `{ ${members.join(', ')} }`.replaceAll('/', '\\/')
}

/** A failure that was asked for can answer with any JSON. */
function isPlain(body: unknown): body is Plain {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}

const REASONS: Readonly<Record<number, string>> = {
  207: 'Multi Status',
  209: 'X-NITRO-WARNING',
  599: 'Netscaler specific error',
}

/** As the appliance sends it. */
export function toAnswer({ status, body, headers }: Reply, withSeverity: boolean): HttpAnswer {
  const text = toBytes(body, withSeverity)
  const html = typeof body === 'string'
  return {
    status,
    reason: REASONS[status],
    headers: {
      server: 'Apache',
      'cache-control': 'no-store, no-cache, must-revalidate, post-check=0, pre-check=0',
      pragma: 'no-cache',
      'x-frame-options': 'SAMEORIGIN',
      'x-content-type-options': 'nosniff',
      'content-type': html ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
      ...headers,
      'content-length': String(Buffer.byteLength(text)),
    },
    text,
  }
}

/** What a failure that was asked for is answered with. */
export function errorReply({ status = 503, body, errorcode, message }: FakeFailure): Reply {
  if (typeof body === 'string') return body === '' ? { status } : { status, body }
  if (body !== undefined) return { status, body: body as Plain }
  if (errorcode === undefined) return { status, body: `<html><body>${status}</body></html>` }
  const reply = new NitroError(errorcode, undefined, status).toReply()
  if (message === undefined || typeof reply.body !== 'object') return reply
  return { status, body: { ...reply.body, message } }
}
