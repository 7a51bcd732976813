/**
 * A controller under a lease, to be stopped and woken by its parent. Each line of its input is a set of desired members.
 * It says `leading`, and `set` once a line was taken in.
 * `node --import scripts/source.mjs lease-child.ts SOCKET REDIS-PORT`
 */
import { createInterface } from 'node:readline'
import { reconcile, redisLease, type DesiredMember } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { createClient } from 'redis'

const [socket = '', port = ''] = process.argv.slice(2)
const client = createClient({ url: `redis://127.0.0.1:${port}` })
client.on('error', () => undefined)
await client.connect()
const lb = haproxyRuntime({ socket })
const loop = reconcile(lb, {
  pools: ['web'],
  owns: () => true,
  lease: redisLease(client, { key: 'edge' }),
  leaseTtl: '1s',
})
const say = (what: object): void => console.log(JSON.stringify(what))
loop.on('leading', (leading) => say({ leading }))
createInterface({ input: process.stdin }).on('line', (line) => {
  loop.set(JSON.parse(line) as DesiredMember[])
  say({ set: true })
})
