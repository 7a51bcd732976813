/** A lease of a real Redis or NATS, over a connection of its own. */
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { natsLease, redisLease, type Lease } from 'drainable'
import { createClient } from 'redis'
import type { Engine } from './engines.js'
import { StoreServer } from './store-servers.js'

export type LeaseEngine = 'redis' | 'nats'

export interface OpenLease extends AsyncDisposable {
  readonly lease: Lease
}

export async function openLease(kind: LeaseEngine, port: number, key: string): Promise<OpenLease> {
  if (kind === 'redis') {
    const client = createClient({ url: `redis://127.0.0.1:${port}` })
    client.on('error', () => undefined) // what a call fails with is what counts
    await client.connect()
    return {
      lease: redisLease(client, { key }),
      [Symbol.asyncDispose]: async () => client.destroy(),
    }
  }
  const connection = await connect({ servers: `127.0.0.1:${port}` })
  const bucket = await new Kvm(connection).open('leases')
  return {
    lease: natsLease(bucket, { key }),
    [Symbol.asyncDispose]: () => connection.close().catch(() => undefined),
  }
}

export function startServer(kind: LeaseEngine, engine: Engine): Promise<StoreServer> {
  return kind === 'redis' ? StoreServer.redis(engine) : StoreServer.nats(engine)
}
