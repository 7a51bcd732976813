import type { Answer } from './replies.js'
import { frameworkError, html } from './replies.js'
import { ok, word, type Call, type Lab } from './call.js'
import type { Token } from './tokens.js'
import type { Unit } from '../device/unit.js'

/** Who sent a request, or why it is turned away. */
export type Caller =
  { readonly user: string; readonly token?: string } | { readonly refused: Answer }

/**
 * Tokens are checked before Basic credentials, and a request without either is turned away by the
 * REST framework in JSON; wrong Basic credentials are turned away by the web server in HTML.
 */
export function identify(
  lab: Lab,
  unit: Unit,
  path: string,
  headers: { readonly token: string | undefined; readonly authorization: string | undefined },
): Caller {
  if (headers.token !== undefined) {
    const found = unit.tokens.check(headers.token)
    if (found === 'expired') return { refused: frameworkError(401, 'X-F5-Auth-Token has expired.') }
    if (found === 'unknown')
      return { refused: frameworkError(401, 'X-F5-Auth-Token does not exist.') }
    return { user: found.userName, token: found.token }
  }
  if (headers.authorization === undefined) {
    return {
      refused: frameworkError(
        401,
        `Authorization failed: no user authentication header or token detected. Uri:http://localhost:8100${path} Referrer:Unknown Sender:Unknown`,
      ),
    }
  }
  if (!basicMatches(lab, headers.authorization)) {
    const challenge = { 'www-authenticate': 'Basic realm="Enterprise Manager"' }
    return { refused: html(401, '401 F5 Authorization Required', challenge) }
  }
  // Before 14.0 a role other than Administrator needs a token
  if (lab.options.version === '13.1' && lab.options.role !== 'admin') {
    return { refused: denied(lab, path, 'GET') }
  }
  return { user: lab.options.username }
}

function basicMatches(lab: Lab, authorization: string): boolean {
  const given = /^Basic (.+)$/i.exec(authorization)?.[1]
  if (given === undefined) return false
  const { username, password } = lab.options
  return Buffer.from(given, 'base64').toString() === `${username}:${password}`
}

/** Refused by the rights of the REST framework: a 401, although the user is known. */
export function denied(lab: Lab, path: string, method: string): Answer {
  const user = `https://localhost/mgmt/shared/authz/users/${lab.options.username}`
  return frameworkError(
    401,
    `Authorization failed: user=${user} resource=${path} verb=${method} uri:http://localhost:8100${path} referrer:Unknown sender:Unknown`,
  )
}

/** `POST /mgmt/shared/authn/login`: the one request that needs no credentials in its headers. */
export function login(call: Omit<Call, 'user' | 'token'>): Answer {
  const { lab, unit } = call
  const { username, password, lockAfter, maxTokens } = lab.options
  const { body } = call
  if (typeof body['username'] !== 'string' || typeof body['password'] !== 'string') {
    return frameworkError(400, 'username and password must not be null')
  }
  if (lab.options.loginNeedsBasic) {
    const caller = identify(lab, unit, call.path, {
      token: undefined,
      authorization: call.authorization,
    })
    if ('refused' in caller) return caller.refused
  }
  const provider = body['loginProviderName'] ?? 'tmos'
  const locked = unit.failedLogins >= lockAfter
  const right = body['username'] === username && body['password'] === password
  if (!right || locked || provider !== 'tmos') {
    unit.failedLogins += 1
    return frameworkError(401, 'Authentication failed.')
  }
  unit.failedLogins = 0
  if (unit.tokens.count(username) >= maxTokens) {
    return frameworkError(
      400,
      `user 34bc8d0b-7a5f-3f1c-9f1e-5f3d1f4f0a11 has reached maximum active login tokens`,
    )
  }
  const token = unit.tokens.issue(username, lab.options.tokenTimeout)
  return ok({
    username,
    loginReference: {
      link: 'https://localhost/mgmt/cm/system/authn/providers/tmos/1f44a60e-11a7-3c51-a49f-82983026b41b/login',
    },
    loginProviderName: 'tmos',
    token: tokenState(token),
    generation: 0,
    lastUpdateMicros: 0,
  })
}

/** `/mgmt/shared/authz/tokens`: read, prolong, drop. */
export function tokens(call: Call): Answer | undefined {
  const [, , , name] = call.segments
  const { tokens: all } = call.unit
  if (name === undefined) {
    if (call.method !== 'GET') return undefined
    return ok({ items: all.list().map(tokenState), generation: 1, kind: 'shared:authz:tokens' })
  }
  const token = all.check(name)
  if (typeof token === 'string') {
    return frameworkError(404, `Public URI path not registered: /shared/authz/tokens/${name}`)
  }
  if (call.method === 'GET') return ok(tokenState(token))
  if (call.method === 'DELETE') {
    all.drop(name)
    return ok(tokenState(token))
  }
  if (call.method !== 'PATCH') return undefined
  const timeout = Number(word(call, 'timeout') ?? call.body['timeout'])
  if (!Number.isInteger(timeout) || timeout <= 0 || timeout > 36_000) {
    return frameworkError(400, 'timeout must be between 1 and 36000 seconds')
  }
  all.extend(token, timeout)
  return ok(tokenState(token))
}

function tokenState(token: Token): object {
  return {
    token: token.token,
    name: token.token,
    userName: token.userName,
    authProviderName: 'tmos',
    user: { link: `https://localhost/mgmt/shared/authz/users/${token.userName}` },
    timeout: token.timeout,
    startTime: new Date(token.startMicros / 1_000).toISOString(),
    address: '127.0.0.1',
    partition: '[All]',
    generation: 1,
    lastUpdateMicros: token.lastUpdateMicros,
    expirationMicros: token.expirationMicros,
    kind: 'shared:authz:tokens:authtokenitemstate',
    selfLink: `https://localhost/mgmt/shared/authz/tokens/${token.token}`,
  }
}
