import { connect, type ClientHttp2Session } from 'node:http2'

/** One bidirectional gRPC stream over plain HTTP/2, in messages. */
export interface GrpcStream {
  send(message: Uint8Array): void
  close(): void
}

/**
 * Opens a stream. gRPC frames are one byte (not compressed) and four of length before each message.
 *
 * @param onEnd - the stream is over, whichever side ended it
 */
export function openStream(
  url: string,
  path: string,
  onMessage: (message: Uint8Array) => void,
  onEnd: () => void,
): GrpcStream {
  const session: ClientHttp2Session = connect(url)
  let over = false
  const end = (): void => {
    if (over) return
    over = true
    session.destroy()
    onEnd()
  }
  session.on('error', end)
  session.on('close', end)
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  let rest = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5) {
      const length = rest.readUInt32BE(1)
      if (rest.length < 5 + length) return
      const message = rest.subarray(5, 5 + length)
      rest = rest.subarray(5 + length)
      onMessage(message)
    }
  })
  stream.on('error', end)
  stream.on('end', end)
  stream.on('close', end)
  return {
    send: (message) => {
      if (over) return
      const head = Buffer.alloc(5)
      head.writeUInt32BE(message.length, 1)
      stream.write(Buffer.concat([head, message]))
    },
    close: end,
  }
}
