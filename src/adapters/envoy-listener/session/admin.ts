import { AdminLink, type AdminAddress, type Call } from '../../../kit/envoy/admin.js'
import { PROVIDER } from '../codec/server.js'

/** What of the admin API is needed; Envoy compares `allow_paths` with the query too, so each as a prefix. */
export const PATHS = [
  '/server_info',
  '/stats',
  '/config_dump',
  '/healthcheck/fail',
  '/healthcheck/ok',
] as const

/** Runs one look over a connection of its own. */
export async function connected<T>(
  address: AdminAddress,
  call: Call,
  fn: (link: AdminLink) => Promise<T>,
): Promise<T> {
  const options = { provider: PROVIDER, name: address.member, paths: PATHS.join(', ') }
  const link = new AdminLink(address, call, options)
  try {
    return await fn(link)
  } finally {
    await link.close()
  }
}
