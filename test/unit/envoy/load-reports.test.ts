import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { loadReports } from 'drainable/envoy/grpc'
import { startFake } from 'drainable/testing/envoy'
import { LoadBook } from '../../../src/adapters/envoy/grpc/load-book.js'
import { eventually } from '../../support/eventually.js'

const REF = { pool: 'web', member: '10.0.0.1:80' }
/** A set whose endpoints have this more. */
function setsWith(more: object = {}) {
  const lb_endpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
    ...more,
  }))
  return [{ cluster_name: 'web', endpoints: [{ lb_endpoints }] }]
}

const SETS = setsWith()
const LABELS = { metadata: { filter_metadata: { 'envoy.lb': { version: '1' } } } }

function until(holds: () => boolean): Promise<void> {
  return eventually(() => {
    expect(holds()).toBe(true)
  })
}

describe('separate load reports', () => {
  test.each([
    ['with panic excluded', { panicThreshold: 0 }, SETS, true],
    ['with a panic that may begin later', {}, SETS, false],
    ['with labels of subsets', { panicThreshold: 0 }, setsWith(LABELS), false],
  ])('are enough beside REST, %s', async (_, threshold, initial, verifiedIdle) => {
    const sink = restEndpoints({ port: 0, initial })
    const loads = loadReports({ port: 0, interval: '100ms' })
    const more = { expect: 1, connectTimeout: '100ms', ...threshold } as const
    await using lb = envoy({ endpoints: sink, loads, ...more })
    await until(() => sink.address !== undefined && loads.address !== undefined)
    await using fake = await startFake({
      pools: { web: [] },
      eds: { rest: `http://127.0.0.1:${sink.address?.port ?? 0}`, interval: 20 },
      loads: `http://127.0.0.1:${loads.address?.port ?? 0}`,
      ...threshold,
    })
    const end = await fake.occupy(REF)
    const run = startDrain(lb, REF, { timeout: '30s', settle: '100ms' })
    await until(() => run.why().some(({ code, count }) => code === 'in-flight' && count === 1))
    await end()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle })
    await run.close()
  })

  test('of an unlisted proxy keep members from idle', async () => {
    const loads = loadReports({ port: 0, interval: '100ms' })
    await using listed = await startFake({ pools: { web: ['10.0.0.1:80'] }, node: 'listed' })
    await using lb = envoy({
      endpoints: callbackEndpoints({
        load: () => Promise.resolve(structuredClone(SETS)),
        publish: () => Promise.resolve(),
      }),
      admin: [listed.url],
      loads,
    })
    await until(() => loads.address !== undefined)
    const url = `http://127.0.0.1:${loads.address?.port ?? 0}`
    await using stranger = await startFake({
      pools: { web: ['10.0.0.1:80'] },
      node: 'stranger',
      loads: url,
    })
    expect(stranger.url).not.toBe(listed.url)
    const run = startDrain(lb, REF, { timeout: '30s', settle: '100ms' })
    await until(() => run.why().some(({ scope }) => scope === 'stranger'))
    expect(run.report().members[0]?.phase).not.toBe('idle')
    await run.close()
  })

  test('are not enough for a sink without receipts', () => {
    const loads = loadReports({ port: 0 })
    const endpoints = fileEndpoints({ cluster: 'web', path: '/tmp/web.json' })
    expect(() => envoy({ endpoints, loads })).toThrow(/admin: expected the addresses/)
  })

  test.each([
    [{ port: -1 }, /port/],
    [{ port: 0, interval: '10ms' }, /interval/],
    [{ port: 0, hots: 'x' } as never, /unknown option 'hots'/],
  ])('with options %j', (options, words) => {
    expect(() => loadReports(options as never)).toThrow(words)
  })

  test('on a port in use are refused with its name', async () => {
    const first = loadReports({ port: 0 })
    await first.open(() => [])
    const second = loadReports({ port: first.address?.port ?? 0 })
    await expect(second.open(() => [])).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await first.close()
    await second.close()
  })
})

test('load reports without endpoints say nothing about an endpoint', () => {
  let now = 0
  const book = new LoadBook(() => now, 250)
  const stream = {}
  book.begin(stream, 'grpc-client', undefined, () => undefined)
  now = 250
  type Report = Parameters<LoadBook['report']>[1]
  const report = {
    clusterStats: [
      {
        clusterName: 'web',
        clusterServiceName: '',
        upstreamLocalityStats: [
          { totalRequestsInProgress: 3n, totalIssuedRequests: 3n, upstreamEndpointStats: [] },
        ],
      },
    ],
  }
  book.report(stream, report as unknown as Report)
  expect(book.nodes()[0]?.of('web', '10.0.0.1:80')).toBeUndefined()
})
