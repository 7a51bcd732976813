// One machine, 14 pools, 2 HAProxy + BIG-IP + NetScaler.
import { combineProviders, select, startDrain, ready, restore, fileTickets } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { f5Bigip } from 'drainable/f5-bigip'
import { citrixAdc } from 'drainable/citrix-adc'
const secret = (n: string) => process.env[n] ?? ''
await using all = combineProviders(
  {
    edgeA: haproxyRuntime({ socket: { host: '10.0.0.2', port: 9999 } }),
    edgeB: haproxyRuntime({ socket: { host: '10.0.0.3', port: 9999 } }),
    bigip: f5Bigip({
      url: ['https://bigip-a', 'https://bigip-b'],
      username: 'drain',
      password: secret('BIGIP_PASSWORD'),
      tls: { ca: '/etc/ssl/corp.pem' },
    }),
    adc: citrixAdc({
      url: 'https://adc',
      username: 'drain',
      password: secret('ADC_PASSWORD'),
      tls: { fingerprint256: 'AB:CD' },
    }),
  },
  { onMissing: 'skip' },
)
const node = { address: '10.1.2.3' }
const found = await select(all, node)
if (found.length !== 14) throw new Error(`expected 14 memberships, found ${found.length}`)
const d = startDrain(all, node, {
  timeout: '15m',
  onUnreachable: 'wait',
  keepReady: 1,
  tickets: fileTickets('/var/lib/drain'),
  id: 'maint-10.1.2.3',
})
for await (const e of d) {
  if (e.type === 'load')
    console.log(`${e.ref.balancer}/${e.ref.pool}: ${e.complete ? e.active : '?'}`)
  if (e.type === 'overruled') console.warn(`${e.ref.balancer}: another client set ${e.found}`)
  if (e.type === 'end')
    for (const m of e.report.members)
      console.log(m.ref.balancer, m.ref.pool, m.outcome, m.verifiedIdle)
}
const report = await d.done
if (report.outcome !== 'idle') {
  await restore(all, await d.ticket)
  process.exit(1)
}
// ... reboot ...
await ready(all, node, { waitHealthy: '10m' })
