/** Sticky sessions by cookie, as Envoy's filter `stateful_session` keeps them. */
import { until } from '../wait.js'
import { ask } from './client.js'

const TYPES = 'type.googleapis.com/envoy.extensions'

/** For `httpFilters`. */
export const SESSIONS = {
  name: 'envoy.filters.http.stateful_session',
  typed_config: {
    '@type': `${TYPES}.filters.http.stateful_session.v3.StatefulSession`,
    session_state: {
      name: 'envoy.http.stateful_session.cookie',
      typed_config: {
        '@type': `${TYPES}.http.stateful_session.cookie.v3.CookieBasedSessionState`,
        cookie: { name: 'sticky', path: '/', ttl: '60s' },
      },
    },
  },
}

/** The cookie of a client that a server has answered. */
export function cookieOf(proxy: number, server: number): Promise<string> {
  return until(async () => {
    const answer = await ask(proxy)
    return answer.port === server ? String(answer.headers['set-cookie']).split(';')[0] : undefined
  }, 'an answer of the server')
}
