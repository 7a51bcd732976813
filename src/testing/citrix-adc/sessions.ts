import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FakeOptions } from './options.js'
import { done, NitroError, type Reply } from './reply.js'

/** A user who is allowed in. */
export interface Session {
  readonly token: string
  readonly username: string
  readonly rights: 'superuser' | 'read-only'
  partition: string
  readonly idleFor: number
  usedAt: number
}

/**
 * Sessions of one node. A token is taken back in any of the forms clients in the field send it:
 * `Cookie: NITRO_AUTH_TOKEN=`, `Cookie: sessionid=`, a request header named `Set-Cookie` (the Go
 * client), and `sessionid` inside the body (the oldest ones).
 */
export class Sessions {
  readonly #options: FakeOptions
  readonly #open = new Map<string, Session>()

  constructor(options: FakeOptions) {
    this.#options = options
  }

  get open(): number {
    this.#sweep()
    return this.#open.size
  }

  login(payload: unknown): Reply {
    const given = (typeof payload === 'object' && payload !== null ? payload : {}) as {
      username?: unknown
      password?: unknown
      timeout?: unknown
    }
    if (typeof given.username !== 'string') throw new NitroError(1095, 'username')
    if (typeof given.password !== 'string') throw new NitroError(1095, 'password')
    const rights = this.#check(given.username, given.password)
    const timeout = given.timeout === undefined ? 1_800 : Number(given.timeout)
    if (!Number.isInteger(timeout) || timeout < 300 || timeout > 86_400) throw new NitroError(1219)
    this.#sweep()
    if (this.#open.size >= (this.#options.maxSessions ?? 20)) throw new NitroError(445)
    const token = `##${randomBytes(32).toString('hex').toUpperCase()}`
    this.#open.set(token, {
      token,
      username: given.username,
      rights,
      partition: 'default',
      idleFor: timeout * 1_000,
      usedAt: Date.now(),
    })
    const where = this.#options.tokenIn ?? 'both'
    const reply = done(where === 'cookie' ? {} : { sessionid: token }, 201)
    if (where === 'body') return reply
    const cookie = `NITRO_AUTH_TOKEN=${encodeURIComponent(token)}; path=/nitro/v1`
    return { ...reply, headers: { 'set-cookie': cookie } }
  }

  /** Who sent this request; throws what the appliance would say to a stranger. */
  identify(headers: IncomingHttpHeaders, body: unknown): Session {
    const token = tokenOf(headers, body)
    if (token !== undefined) {
      const session = this.#open.get(token)
      if (session && Date.now() - session.usedAt <= session.idleFor) {
        session.usedAt = Date.now()
        return session
      }
      const { status, errorcode } = this.#options.expiry ?? { status: 401, errorcode: 444 }
      throw new NitroError(errorcode, undefined, status)
    }
    const username = headers['x-nitro-user']
    const password = headers['x-nitro-pass']
    if (typeof username !== 'string' || typeof password !== 'string') throw new NitroError(352)
    if (this.#options.headerAuth === false) throw new NitroError(1244)
    const rights = this.#check(username, password)
    return { token: '', username, rights, partition: 'default', idleFor: 0, usedAt: Date.now() }
  }

  logout(session: Session): void {
    this.#open.delete(session.token)
  }

  expire(): void {
    this.#open.clear()
  }

  #check(username: string, password: string): 'superuser' | 'read-only' {
    const { users = {}, username: admin = 'admin', password: secret = 'secret' } = this.#options
    const known = Object.hasOwn(users, username) ? users[username] : undefined
    if (known?.password === password) return known.rights ?? 'superuser'
    if (username !== admin || password !== secret) throw new NitroError(354)
    return 'superuser'
  }

  #sweep(): void {
    for (const [token, session] of this.#open) {
      if (Date.now() - session.usedAt > session.idleFor) this.#open.delete(token)
    }
  }
}

function tokenOf(headers: IncomingHttpHeaders, body: unknown): string | undefined {
  const cookies = [headers.cookie ?? '', ...(headers['set-cookie'] ?? [])].join('; ')
  const match = /(?:^|[;\s])(?:NITRO_AUTH_TOKEN|sessionid)=([^;\s]*)/.exec(cookies)
  if (match?.[1] !== undefined && match[1] !== '') return decode(match[1])
  if (typeof body === 'object' && body !== null && 'sessionid' in body) {
    const { sessionid } = body
    if (typeof sessionid === 'string' && sessionid !== '') return sessionid
  }
  return undefined
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
