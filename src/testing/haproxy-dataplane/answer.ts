import type { HttpAnswer } from '../http/server.js'

/** What the API answers: a status, a JSON body (none where undefined), more headers. */
export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The version to print in the header, where it is not the present one. */
  readonly configVersion?: number
}

/** An answer with a body. */
export function ok(body: unknown, status = 200): Answer {
  return { status, body }
}

/** The API's error shape. Before chi some validation errors carry a code that is not the status. */
export function failure(status: number, message: string, code = status): Answer {
  return { status, body: { code, message } }
}

/** Thrown from the depth of a handler: the answer. */
export class Refusal extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super('refused')
    this.answer = answer
  }
}

/** Ends the request with an error. */
export function refuse(status: number, message: string, code = status): never {
  throw new Refusal(failure(status, message, code))
}

/** As the API sends it; `version` is the configuration's. */
export function toAnswer(
  { status, body, headers, configVersion }: Answer,
  version: number,
): HttpAnswer {
  const common = {
    'Configuration-Version': String(configVersion ?? version),
    Vary: 'Origin',
    ...headers,
  }
  if (body === undefined) return { status, headers: common }
  const isText = typeof body === 'string'
  return {
    status,
    headers: { ...common, 'Content-Type': isText ? 'text/plain' : 'application/json' },
    text: isText ? body : `${JSON.stringify(body)}\n`,
  }
}
