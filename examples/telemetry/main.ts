/**
 * Rolls a pool, sends the trace to a collector, and prints the counters as Prometheus reads them.
 *
 * The collector is OTLP over HTTP, `OTEL_EXPORTER_OTLP_ENDPOINT` or http://localhost:4318. Without one the spans are printed.
 */
import { trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { ConsoleSpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { roll } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { traceDrains } from './opentelemetry.js'
import { countDrains } from './prometheus.js'

const hasCollector = process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] !== undefined
const exporter = hasCollector ? new OTLPTraceExporter() : new ConsoleSpanExporter()
const spans = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
trace.setGlobalTracerProvider(spans)
traceDrains()
const metrics = countDrains()

await using fake = await startFake({ pools: { web: ['web1', 'web2', 'web3'] } })
await using lb = haproxyRuntime({ socket: fake.socket, oldWorkers: 'accept' })
await roll(
  lb,
  { pool: 'web' },
  {
    group: 'ref',
    timeout: '1m',
    act: () => Promise.resolve(),
    waitHealthy: () => Promise.resolve(true),
  },
)

console.log(metrics())
await spans.shutdown()
