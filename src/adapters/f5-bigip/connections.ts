import type { CallContext } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { Device } from './device.js'
import { PROVIDER, uncertain } from './session.js'

/**
 * Deletes the open connections to one address and port, whatever pool they came through.
 *
 * Without its filter the same request empties the connection table of the whole device. So the path
 * is made here and nowhere else, and only from an address and a port that are beyond doubt.
 *
 * @throws `UNSUPPORTED` where they are not
 */
export async function deleteConnections(
  device: Device,
  address: string | undefined,
  port: number,
  ctx: CallContext,
): Promise<void> {
  const path = connectionPath(address, port)
  const meaning = await device.session.ask({ method: 'DELETE', path }, ctx)
  if (meaning.kind === 'ok' || meaning.kind === 'absent') return
  const error = device.session.toError(meaning, 'DELETE /mgmt/tm/sys/connection')
  throw uncertain(error, meaning.kind)
}

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]+)(?:%\d+)?$/i

/** The one path that deletes connections; the words are those of tmsh, joined by `+`. */
export function connectionPath(address: string | undefined, port: number): string {
  const any = address === undefined || /^(?:any6?|::|0\.0\.0\.0)(?:%\d+)?$/i.test(address)
  if (any || !ADDRESS.test(address) || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new DrainableError(
      'UNSUPPORTED',
      `connections can only be cut by one address and one port, not by ${address ?? 'no address'} port ${port}; let them end, or cut them on the server`,
      { provider: PROVIDER },
    )
  }
  const server = encodeURIComponent(address).replaceAll('%3A', ':')
  return `/mgmt/tm/sys/connection?options=ss-server-addr+${server}+ss-server-port+${port}`
}
