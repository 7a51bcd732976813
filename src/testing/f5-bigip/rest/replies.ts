/** Bodies in the device's own shapes: errors, HTML of the layers before it, nested statistics. */

import type { HttpAnswer } from '../../http/server.js'
import type { FakeFailure } from '../options.js'

/** What a route answers. */
export interface Answer {
  readonly status: number
  /** Sent as JSON; an empty body where it is undefined and there is no text. */
  readonly json?: unknown
  readonly text?: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** As the device sends it. */
export function toAnswer({ status, json, text, type, headers }: Answer): HttpAnswer {
  const sent = text ?? (json === undefined ? '' : JSON.stringify(json))
  return {
    status,
    headers: {
      'content-type': type ?? 'application/json; charset=UTF-8',
      'content-length': String(Buffer.byteLength(sent)),
      server: 'Jetty(9.2.22.v20170606)',
      'cache-control': 'no-store, no-cache, must-revalidate',
      ...headers,
    },
    text: sent,
  }
}

/** What a failure that was asked for is answered with. */
export function toError({ status = 503, body }: FakeFailure): HttpAnswer {
  if (typeof body === 'string') return toAnswer({ status, text: body, type: 'text/html' })
  if (body !== undefined) return toAnswer({ status, json: body })
  const title = status === 503 ? 'Configuration Utility restarting...' : `${status} Error`
  return toAnswer(html(status, title))
}

/** Thrown inside a route to answer an error. */
export class Refusal extends Error {
  readonly answer: Answer
  constructor(answer: Answer) {
    super(`answer ${answer.status}`)
    this.answer = answer
  }
}

let operation = 7_300_000

/** An error of the REST framework, which comes before the configuration service. */
export function frameworkError(status: number, message: string): Answer {
  operation += 1
  return {
    status,
    json: {
      code: status,
      message,
      referer: '127.0.0.1',
      restOperationId: operation,
      kind: ':resterrorresponse',
    },
  }
}

/** An error of the configuration service. */
export function configError(status: number, message: string, apiError?: number): Refusal {
  return new Refusal({
    status,
    json: {
      code: status,
      message,
      errorStack: [],
      ...(apiError === undefined ? {} : { apiError }),
    },
  })
}

/** An object that is not there; while the configuration loads, every object is. */
export function notFound(what: string, name: string): Refusal {
  return configError(404, `01020036:3: The requested ${what} (${name}) was not found.`, 3)
}

export function notRegistered(path: string): Answer {
  return frameworkError(404, `Public URI path not registered: ${path.replace(/^\/mgmt/, '')}`)
}

export function html(status: number, title: string, headers?: Record<string, string>): Answer {
  const text = `<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n<title>${title}</title>\n</head><body>\n<h1>${title}</h1>\n</body></html>\n`
  return { status, text, type: 'text/html; charset=iso-8859-1', ...(headers && { headers }) }
}

/** A statistic: numbers are `value`, words are `description`. */
export function stat(value: string | number): Record<string, string | number> {
  return typeof value === 'number' ? { value } : { description: value }
}

/** Fields as the nested entries of one statistics object. */
export function entries(fields: Readonly<Record<string, string | number>>): object {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, stat(value)]))
}

/** One row of statistics in the nested shape of `show` commands. */
export function row(selfLink: string, kind: string, path: string, nested: object): object {
  return {
    kind: `tm:${kind}stats`,
    selfLink,
    entries: { [`https://localhost/mgmt/${path}/0`]: { nestedStats: { entries: nested } } },
  }
}
