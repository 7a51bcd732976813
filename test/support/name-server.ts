/** A name server that answers as the test says: the addresses of one name (RFC 1035, records of type A). */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

const [HEAD, TYPE_A, CLASS_IN, TTL] = [12, 1, 1, 1]
const [ANSWER, NO_SUCH_NAME] = [0x8180, 0x8183]

export class NameServer implements AsyncDisposable {
  readonly #socket: Socket = createSocket('udp4')
  /** The addresses that every name has. */
  addresses: readonly string[]

  private constructor(addresses: readonly string[]) {
    this.addresses = addresses
    this.#socket.on('message', (query, { port, address }) => {
      this.#socket.send(toReply(query, this.addresses), port, address)
    })
  }

  static async start(port: number, addresses: readonly string[]): Promise<NameServer> {
    const server = new NameServer(addresses)
    server.#socket.bind(port, '127.0.0.1')
    await once(server.#socket, 'listening')
    return server
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, 'close')
    this.#socket.close()
    await closed
  }
}

function toReply(query: Buffer, addresses: readonly string[]): Buffer {
  let end = HEAD
  while (query[end] !== 0) end += query[end]! + 1
  const question = query.subarray(HEAD, end + 5)
  const answers = query.readUInt16BE(end + 1) === TYPE_A ? addresses : []
  const head = Buffer.alloc(HEAD)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(addresses.length === 0 ? NO_SUCH_NAME : ANSWER, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(answers.length, 6)
  return Buffer.concat([head, question, ...answers.map(toRecord)])
}

/** Its name is that of the question, by a pointer (section 4.1.4). */
function toRecord(address: string): Buffer {
  const record = Buffer.alloc(16)
  record.writeUInt16BE(0xc000 | HEAD, 0)
  record.writeUInt16BE(TYPE_A, 2)
  record.writeUInt16BE(CLASS_IN, 4)
  record.writeUInt32BE(TTL, 6)
  record.writeUInt16BE(4, 10)
  Buffer.from(address.split('.').map(Number)).copy(record, 12)
  return record
}
