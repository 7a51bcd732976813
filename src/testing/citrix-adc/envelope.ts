import type { Plain } from './config.js'
import { decodeName, parseQuery, type Query } from './query.js'
import { NitroError } from './reply.js'

/** A request with its wrappings taken off. */
export interface Envelope {
  readonly method: string
  readonly tree: 'config' | 'stat'
  readonly type: string
  readonly name: string | undefined
  readonly query: Query
  /** Of `?action=`, or of `params` in the body; its case is kept. */
  readonly action: string | undefined
  readonly warnings: boolean
  readonly onError: 'exit' | 'continue'
  /** The whole parsed body: old clients put the session into it. */
  readonly body: unknown
  /** What stands under the type's key; a list asks for a bulk operation. */
  readonly payload: Plain | readonly Plain[]
}

/**
 * Reads path, query and body of a request. The body may be JSON, or the form of the oldest clients:
 * `object=<JSON>` posted to `/nitro/v1/config/` with `params` and `sessionid` inside.
 *
 * @returns undefined where the path is not one of NITRO's
 */
export function openEnvelope(
  method: string,
  target: string,
  contentType: string,
  text: string,
  onError: string | undefined,
): Envelope | undefined {
  const at = target.indexOf('?')
  const path = at < 0 ? target : target.slice(0, at)
  const match = /^\/nitro\/v1\/(config|stat)(?:\/([^/]*))?(?:\/([^/]*))?\/?$/.exec(path)
  if (!match) return undefined
  const query = parseQuery(at < 0 ? '' : target.slice(at + 1))
  const body = parseBody(contentType, text)
  const params = paramsOf(body)
  const keys = Object.keys(body).filter((key) => key !== 'params' && key !== 'sessionid')
  const type = match[2] === undefined || match[2] === '' ? keys[0] : decodeName(match[2])
  if (type === undefined) throw new NitroError(1232)
  const writes = method !== 'GET' && method !== 'DELETE'
  if (writes && keys.length > 0 && !keys.includes(type)) throw new NitroError(1232, keys[0])
  return {
    method,
    tree: match[1] === 'stat' ? 'stat' : 'config',
    type,
    name: match[3] === undefined || match[3] === '' ? undefined : decodeName(match[3]),
    query,
    action: query.words.get('action') ?? params['action'],
    warnings: (query.words.get('warning') ?? params['warning'] ?? '').toLowerCase() === 'yes',
    onError: (onError ?? params['onerror'])?.toLowerCase() === 'continue' ? 'continue' : 'exit',
    body,
    payload: payloadOf(body[type], query),
  }
}

function parseBody(contentType: string, text: string): Plain {
  let json = text
  if (/x-www-form-urlencoded/i.test(contentType) || text.startsWith('object=')) {
    json = new URLSearchParams(text).get('object') ?? text
  }
  if (json.trim() === '') return {}
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch {
    throw new NitroError(1233)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new NitroError(1233)
  }
  return parsed as Plain
}

function paramsOf(body: Plain): Readonly<Record<string, string | undefined>> {
  const params = body['params']
  if (typeof params !== 'object' || params === null) return {}
  return Object.fromEntries(
    Object.entries(params).map(([key, value]) => [key.toLowerCase(), String(value)]),
  )
}

function payloadOf(given: unknown, query: Query): Plain | readonly Plain[] {
  if (Array.isArray(given)) return given as readonly Plain[]
  if (typeof given === 'object' && given !== null) return given as Plain
  if (given !== undefined) throw new NitroError(1234)
  return Object.fromEntries(query.args)
}
