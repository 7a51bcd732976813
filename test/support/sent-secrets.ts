import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** The headers that carry credentials: a password in base64, a token of a session. */
const CREDENTIALS = /^(authorization|cookie|x-f5-auth-token|x-nitro-(user|pass)|set-cookie)$/i
const CHANNEL = 'undici:request:create'
/** What stands before the secret in such a header. */
const BEFORE = /^(Basic |NITRO_AUTH_TOKEN=|sessionid=)/

/** The secrets of one provider: those that it was given, and those in the headers of its requests so far. */
export interface SentSecrets {
  readonly secrets: () => readonly string[]
  /** Stops listening. */
  readonly end: () => void
}

/**
 * Listens to the requests to one origin for what must never be shown.
 *
 * @param url - of the product
 * @param given - passwords and keys that the provider was given
 */
export function sentSecrets(url: string, ...given: readonly string[]): SentSecrets {
  const origin = new URL(url).origin
  const seen = new Set(given)
  const listen = (message: unknown): void => {
    const { request } = message as { request: { origin: unknown; headers: readonly unknown[] } }
    if (String(request.origin) !== origin) return
    for (let i = 0; i + 1 < request.headers.length; i += 2) {
      const [name, value] = [String(request.headers[i]), String(request.headers[i + 1])]
      if (!CREDENTIALS.test(name) || value === 'admin') continue
      const secret = value.replace(BEFORE, '')
      seen.add(secret)
      seen.add(decodeURIComponent(secret))
    }
  }
  subscribe(CHANNEL, listen)
  return { secrets: () => [...seen], end: () => unsubscribe(CHANNEL, listen) }
}
