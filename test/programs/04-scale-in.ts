// Scale-in, WebSockets for hours: honour, refuse persistence at 30 min, force at 2 h, remove, report.
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
declare const metrics: { gauge(n: string, v: number): void }
declare function putReport(json: string): Promise<void>
declare function terminateInstance(): Promise<void>
await using lb = haproxyRuntime({ socket: '/run/haproxy/admin.sock' })
const d = startDrain(
  lb,
  { address: '10.1.2.3', port: 8080 },
  {
    escalateAfter: '30m',
    timeout: '2h',
    onTimeout: 'terminate',
    until: 'removed',
    settle: '5s',
    onOverrule: 'reapply',
    keepReady: 2,
    onMinimum: 'wait',
  },
)
d.on('load', (e) => metrics.gauge('ws_left', e.active)).on('terminated', (e) =>
  metrics.gauge('ws_cut', e.count),
)
const report = await d.done
await putReport(JSON.stringify(report))
const m = report.members[0]!
switch (m.outcome) {
  case 'removed':
  case 'gone':
    await terminateInstance()
    break
  case 'terminated':
    console.warn(`cut ${m.terminated}`)
    await terminateInstance()
    break
  default:
    throw new Error(`not scaled in: ${m.outcome}`)
}
