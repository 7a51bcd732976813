/**
 * Decoder of `show sess all`: which connections of clients carry a tunnel.
 *
 * One stream begins with its pointer at the start of a line and goes on in indented lines. Of these,
 * seen alike on 2.6, 3.0 and 3.2:
 *
 * - `txn=` is there for HTTP alone; a tunnel (101, or CONNECT) has `req.st=MSG_TUNNEL rsp.st=MSG_TUNNEL`
 * - `scb=` is the server's side: `state=EST` once it is connected
 * - `co0=` is the client's connection: `mux=PASS` for TCP, `mux=H1`, or one that carries several streams
 */

/**
 * How many connections of clients can't bring another request: what they carry is a tunnel over
 * HTTP/1, or TCP. Anything that is not understood is none of them.
 */
export function countTunnels(reply: string): number {
  const connections = new Set<string>()
  for (const stream of reply.split(/^(?=0x[0-9a-f]+: )/m)) {
    const connection = tunnelOf(stream)
    if (connection !== undefined) connections.add(connection)
  }
  return connections.size
}

/** Whether clients have one stream in this process, and it comes from that port. */
export function isOnlyFrom(reply: string, port: number): boolean {
  const clients = reply
    .split(/^(?=0x[0-9a-f]+: )/m)
    .filter((stream) => /^0x/.test(stream) && !stream.includes('frontend=GLOBAL '))
  const source = /^0x[0-9a-f]+: .* source=\S+:(\d+)$/m.exec(clients[0] ?? '')
  return clients.length === 1 && Number(source?.[1]) === port
}

/** The pointer of the client's connection where this stream is a tunnel that is established. */
function tunnelOf(stream: string): string | undefined {
  const client = /^ +co0=(0x[0-9a-f]+) .* mux=(H1|PASS) .*target=LISTENER:/m.exec(stream)
  if (client === null || !/^ +scb=.* state=EST /m.test(stream)) return undefined
  const exchange = /^ +txn=0x.*$/m.exec(stream)?.[0]
  if (exchange !== undefined) {
    const tunnel = / req\.st=MSG_TUNNEL rsp\.st=MSG_TUNNEL /.test(`${exchange} `)
    return tunnel && client[2] === 'H1' ? client[1] : undefined
  }
  const tcp = /^ +frontend=\S+ \(id=-?\d+ mode=tcp\)/m.test(stream)
  return tcp && client[2] === 'PASS' && !stream.includes('frontend=GLOBAL ') ? client[1] : undefined
}
