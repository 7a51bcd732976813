import { connect } from 'node:net'
import type { SocketAddress } from 'drainable/testing/haproxy-runtime'

/**
 * Sends a line and reads to the close. `for` ends the reading after so many milliseconds of silence since the line was
 * sent, `enough` as soon as the reply looks like that.
 */
export function ask(
  at: SocketAddress,
  text: string,
  options: {
    readonly for?: number
    readonly enough?: RegExp
    readonly halfClose?: boolean
  } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = typeof at === 'string' ? connect(at) : connect(at.port, at.host)
    let reply = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      reply += chunk
      if (options.enough?.test(reply) === true) socket.destroy()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(reply))
    socket.write(text, () => {
      if (options.for !== undefined) socket.setTimeout(options.for, () => socket.destroy())
    })
    if (options.halfClose) socket.end()
  })
}
