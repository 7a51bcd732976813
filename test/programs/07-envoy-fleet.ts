// 30 Envoys, gRPC EDS, one controller.
import { drain, isDrainableError } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
declare function proxies(): Promise<string[]>
declare function loadSet(): readonly unknown[]
const lb = envoy({
  endpoints: grpcEndpoints({
    port: 18000,
    host: '0.0.0.0',
    tls: { cert: '/t/c.pem', key: '/t/k.pem', clientCa: '/t/ca.pem' },
    initial: loadSet(),
  }),
  admin: proxies,
  expect: 30,
  onProxyGone: 'wait',
})
try {
  const r = await drain(
    lb,
    [
      { pool: 'web', member: '10.0.0.1:8080' },
      { pool: 'web', member: '10.0.0.2:8080' },
    ],
    { timeout: '5m', until: 'removed' },
  )
  console.log(r.outcome)
} catch (e) {
  if (isDrainableError(e, 'DRAIN_TIMEOUT', 'POOL_AT_MINIMUM'))
    for (const w of e.report.members.flatMap((m) => m.why)) console.error(w.scope, w.code, w.text)
  else throw e
} finally {
  await lb.close()
}
