/** A client of HTTP/2 that takes no notice of GOAWAY: it writes its frames itself. */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { until } from './haproxy.ts'

const [DATA, HEADERS, SETTINGS, GOAWAY] = [0, 1, 4, 7]
const END_STREAM = 1
const END_HEADERS = 4
const ACK = 1

export class StubbornHttp2Client implements AsyncDisposable {
  readonly #socket: Socket
  /** The text of each stream, by its number. */
  readonly #texts = new Map<number, string>()
  readonly #headed = new Set<number>()
  #rest = Buffer.alloc(0)
  #next = 1
  closed = false
  /** HAProxy has told it to begin no more streams. */
  dismissed = false

  constructor(port: number) {
    this.#socket = createConnection({ host: '127.0.0.1', port })
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => (this.closed = true))
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.#socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    this.#send(SETTINGS, 0, 0)
  }

  /** Begins a request; its number. */
  begin(path: string, cookie: string): number {
    const headers = { ':method': 'GET', ':scheme': 'http', ':path': path, ':authority': 'x' }
    return this.#open({ ...headers, cookie: `SRV=${cookie}` }, END_HEADERS | END_STREAM)
  }

  /** A WebSocket (RFC 8441) that is open; its number. */
  async websocket(cookie: string): Promise<number> {
    const stream = this.#open(
      {
        ':method': 'CONNECT',
        ':protocol': 'websocket',
        ':scheme': 'http',
        ':path': '/ws',
        ':authority': 'x',
        'sec-websocket-version': '13',
        cookie: `SRV=${cookie}`,
      },
      END_HEADERS,
    )
    await until(() => this.#headed.has(stream), 'the WebSocket is open')
    return stream
  }

  /** Waits until a stream has brought that text. */
  async brings(stream: number, text: string): Promise<void> {
    await until(() => this.#texts.get(stream)?.includes(text) === true, `the text ${text}`)
  }

  /** Sends over a WebSocket and waits until it comes back. */
  async echo(stream: number, text: string): Promise<void> {
    this.#send(DATA, 0, stream, Buffer.from(text))
    await this.brings(stream, text)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed) return
    const closed = once(this.#socket, 'close')
    this.#socket.destroy()
    await closed
  }

  #open(headers: Readonly<Record<string, string>>, flags: number): number {
    const stream = this.#next
    this.#next += 2
    this.#send(HEADERS, flags, stream, Buffer.concat(Object.entries(headers).map(toField)))
    return stream
  }

  #send(type: number, flags: number, stream: number, body = Buffer.alloc(0)): void {
    const head = Buffer.alloc(9)
    head.writeUIntBE(body.length, 0, 3)
    head.writeUInt8(type, 3)
    head.writeUInt8(flags, 4)
    head.writeUInt32BE(stream, 5)
    this.#socket.write(Buffer.concat([head, body]))
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 9) {
      const end = 9 + this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < end) return
      const [type, flags] = [this.#rest.readUInt8(3), this.#rest.readUInt8(4)]
      const stream = this.#rest.readUInt32BE(5)
      const body = this.#rest.subarray(9, end).toString('latin1')
      this.#rest = this.#rest.subarray(end)
      if (type === SETTINGS && (flags & ACK) === 0) this.#send(SETTINGS, ACK, 0)
      else if (type === GOAWAY) this.dismissed = true
      else if (type === HEADERS) this.#headed.add(stream)
      else if (type === DATA) this.#texts.set(stream, (this.#texts.get(stream) ?? '') + body)
    }
  }
}

/** A header that neither side remembers (RFC 7541, section 6.2.2). */
function toField([name, value]: readonly [string, string]): Buffer {
  const text = (of: string): Buffer => Buffer.concat([Buffer.from([of.length]), Buffer.from(of)])
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}
