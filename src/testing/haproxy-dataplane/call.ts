import { refuse } from './answer.js'
import type { HaproxyCli } from './cli.js'
import type { ConfigStore } from './config-store.js'
import type { Generation } from './generation.js'
import type { ReloadAgent } from './reload-agent.js'

/** What the handlers work on. */
export interface Api {
  readonly generation: Generation
  readonly cli: HaproxyCli
  readonly store: ConfigStore
  readonly reloads: ReloadAgent
}

/** One request, past its credentials. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly names: readonly string[]
  /** What the header X-Runtime-Actions asks for. */
  readonly actions: readonly string[]
  /** Its body, raw. */
  readonly text: string
}

const NAME = /^[^\r\n<>*;$#&{}"]+$/

/** Backend and server of a call: from the query in v2, from the path in v3. Some names never reach HAProxy. */
export function target(
  api: Api,
  call: Call,
): { readonly backend: string; readonly server: string } {
  const v2 = api.generation.tree === 'v2'
  const backend = v2 ? call.query.get('backend') : call.names[0]
  const server = (v2 ? call.names[0] : call.names[1]) ?? ''
  if (backend === null || backend === undefined) {
    refuse(422, 'backend in query is required', 602)
  }
  for (const name of [server, backend]) {
    if (name === '' || NAME.test(name)) continue
    if (api.generation.chi) {
      refuse(400, `name in path: string doesn't match the regular expression "${NAME.source}"`)
    }
    refuse(422, `name in path should match '${NAME.source}'`, 605)
  }
  return { backend, server }
}

/** A JSON object sent as body. */
export function readBody(api: Api, text: string): Record<string, unknown> {
  const { chi } = api.generation
  if (text === '') {
    if (chi) refuse(400, 'value is required but missing')
    refuse(422, 'data in body is required', 602)
  }
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
      return body as Record<string, unknown>
    }
  } catch {
    // said below
  }
  refuse(
    400,
    chi
      ? `failed to decode request body: invalid character '${text[1] ?? ''}' looking for beginning of object key string`
      : `parsing data body from "" failed, because models.RuntimeServer.readFieldHash: expect ", but found ${text[1] ?? ''}, error found in #2 byte of ...|${text}|..., bigger context ...|${text}|...`,
  )
}

/** A validation error, with the code that its generation gives. */
export function invalid(api: Api, message: string, code: number): never {
  refuse(422, message, api.generation.chi ? 422 : code)
}

/** A value of a body where a text is expected; anything else is none. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}
