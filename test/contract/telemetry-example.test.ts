import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

interface OtlpSpan {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code: number }
}

/** What a collector of OTLP over HTTP reads, in its JSON encoding. */
interface OtlpTraces {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

/** Runs the example against a collector of ours. */
async function runExample(): Promise<{ spans: readonly OtlpSpan[]; page: string }> {
  const spans: OtlpSpan[] = []
  const collector = createServer((request, response) => {
    void text(request).then((body) => {
      const { resourceSpans } = JSON.parse(body) as OtlpTraces
      for (const { scopeSpans } of resourceSpans)
        for (const scope of scopeSpans) spans.push(...scope.spans)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const child = spawn(
    process.execPath,
    ['--import', `${root}scripts/source.mjs`, `${root}examples/telemetry/main.ts`],
    {
      env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const closed = once(child, 'close') as Promise<[number | null]>
  const [page, [status]] = await Promise.all([text(child.stdout), closed])
  collector.closeAllConnections()
  collector.close()
  expect(status).toBe(0)
  return { spans, page }
}

describe('examples/telemetry', () => {
  let seen: Awaited<ReturnType<typeof runExample>>

  beforeAll(async () => {
    seen = await runExample()
  })

  it('sends one roll with drain, act and health of each server to a collector', () => {
    const [roll] = seen.spans.filter(({ name }) => name === 'roll')
    const below = seen.spans.filter(({ parentSpanId }) => parentSpanId === roll?.spanId)
    const servers = ['web/web1', 'web/web2', 'web/web3']
    expect(below.map(({ name }) => name).sort()).toEqual(
      ['act', 'drain', 'health'].flatMap((stage) => servers.map((name) => `${stage} ${name}`)),
    )
    expect(seen.spans).toHaveLength(10)
  })

  it('ends each span well, and not before it began', () => {
    for (const { status, startTimeUnixNano, endTimeUnixNano } of seen.spans) {
      expect(status.code).toBe(1)
      expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano))
    }
  })

  it('gives a page that Prometheus can read', () => {
    const lines = seen.page.trim().split('\n')
    const sample = /^drainable_[a-z_]+\{([a-z]+="[^"\\]*",?)+\} [0-9.]+$/
    expect(lines.filter((line) => !sample.test(line))).toEqual([])
    expect(seen.page).toMatch(/drainable_drains_total\{[^}]*outcome="idle"\} 3\n/)
  })
})
