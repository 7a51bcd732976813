import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { ProtocolFailure, ProtocolFake, ProtocolRequest } from '../protocol-fake.js'

/** One HTTP request, as received; credentials are masked. */
export interface HttpFakeRequest extends ProtocolRequest {
  /** Method, path and query: `GET /v3/info?pretty=1`. */
  readonly line: string
  readonly method: string
  /** The path with its query, as on the wire. */
  readonly path: string
  /** The body: parsed if it is JSON, else its text; undefined if there was none. */
  readonly body?: unknown
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The status of the answer; 0 if there is none. */
  readonly status: number
}

/** A failure of HTTP requests. */
export interface HttpFakeFailure extends ProtocolFailure {
  /** For `status`: the status code. @default an error of the product */
  readonly status?: number
  /** For `execute`: how many milliseconds after the answer it is carried out, by the fake's clock. @default 0 */
  readonly executeAfter?: number
  /** For `status`: a body in place of the product's error, sent as JSON; a text is sent unchanged. */
  readonly body?: unknown
  /** For `status`: headers of the answer, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The common part of all fakes that speak HTTP. */
export interface HttpFake<
  Failure extends HttpFakeFailure = HttpFakeFailure,
  Request extends HttpFakeRequest = HttpFakeRequest,
> extends ProtocolFake<Failure, Request> {
  /** The URL that it listens on, such as `http://127.0.0.1:41234`. */
  readonly url: string
}

/** A request read whole, as a fake answers it. */
export interface IncomingRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** How many are in the works at this address, this one too. */
  readonly underWay: number
  /** The connection it came over: the same for all its requests. */
  readonly connection: object
}

const LARGEST_BODY = 4 * 1024 * 1024
const CREDENTIALS = /^(authorization|cookie|x-f5-auth-token|x-nitro-(user|pass))$/

/** The whole body; undefined where the client went away, or sent more than any client of ours. */
export async function readText(message: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > LARGEST_BODY) return undefined
      chunks.push(chunk)
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks).toString()
}

/** A request as it is remembered: without passwords, tokens and cookies. */
export function toRemembered(request: IncomingRequest): HttpFakeRequest {
  const { method, path, headers, text } = request
  return {
    line: `${method} ${path}`,
    method,
    path,
    ...(text === '' ? {} : { body: readable(text) }),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        CREDENTIALS.test(name) ? '***' : value,
      ]),
    ),
    status: 0,
  }
}

function readable(text: string): unknown {
  try {
    return JSON.parse(text, (key, value: unknown) => (key === 'password' ? '***' : value))
  } catch {
    return text.replace(/("password"\s*:\s*|password=)("[^"]*"|[^&\s]*)/gi, '$1***')
  }
}
