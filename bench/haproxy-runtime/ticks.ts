/**
 * What one look costs in a HAProxy with 10,000 servers: round trips, bytes and time per tick for
 * 1, 100 and 1,000 members under drain, on every HAProxy of the engines folder.
 *
 * `npm run bench haproxy-runtime/ticks`
 */
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'
import { join } from 'node:path'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { MemberRef } from 'drainable/provider'
import { systemClock } from '../../src/provider/clock.js'
import { engines } from '../../test/support/engines.js'
import { Haproxy } from '../../test/support/haproxy.js'

const BACKENDS = 10
const SERVERS = 1_000
const TICKS = 20

const ctx = { signal: new AbortController().signal, clock: systemClock }

for (const engine of engines('haproxy')) {
  await using haproxy = await Haproxy.start({
    engine,
    mode: 'plain',
    config: (port) =>
      Array.from(
        { length: BACKENDS },
        (_, backend) => `
backend b${backend}
${Array.from({ length: SERVERS }, (__, index) => `  server s${index} 127.0.0.1:${port('nobody')}`).join('\n')}`,
      ).join('\n'),
  })
  let connections = 0
  let bytes = 0
  const path = join(haproxy.dir, 'counted.sock')
  const counter = createServer((client) => {
    connections += 1
    const behind = createConnection({ path: haproxy.socket })
    behind.on('data', (chunk: Buffer) => (bytes += chunk.length))
    client.on('error', () => undefined).on('close', () => behind.destroy())
    // Its end is piped: what is on its way to the client must not be cut.
    behind.on('error', () => client.destroy())
    client.pipe(behind).pipe(client)
  }).listen(path)
  await once(counter, 'listening')
  console.log(`HAProxy ${haproxy.version}, ${BACKENDS} backends of ${SERVERS} servers`)
  for (const count of [1, 100, 1_000]) {
    await using lb = haproxyRuntime({ socket: path })
    const refs = Array.from({ length: count }, (_, index): MemberRef => ({
      pool: `b${index % BACKENDS}`,
      member: `s${Math.floor(index / BACKENDS)}`,
    }))
    await lb.apply(
      refs.map((ref) => ({ kind: 'hold', to: 'drain', ref })),
      ctx,
    )
    await lb.observe(refs, ctx)
    await lb.observe(refs, ctx)
    connections = 0
    bytes = 0
    const took: number[] = []
    for (let tick = 0; tick < TICKS; tick += 1) {
      const from = performance.now()
      await lb.observe(refs, ctx)
      took.push(performance.now() - from)
    }
    const median = took.sort((a, b) => a - b)[TICKS / 2] ?? NaN
    console.log(
      `  ${String(count).padStart(5)} drains: ${(connections / TICKS).toFixed(2)} round trips, ${Math.round(bytes / TICKS / 1024)} KB, ${median.toFixed(1)} ms per tick`,
    )
    await lb.apply(
      refs.map((ref) => ({ kind: 'restore', expect: 'drain', to: 'ready', ref })),
      ctx,
    )
  }
  const closed = once(counter, 'close')
  counter.close()
  await closed
}
