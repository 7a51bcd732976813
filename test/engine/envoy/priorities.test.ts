import { describe, expect, test } from 'vitest'
import { drain, isDrainableError } from 'drainable'
import { engines } from '../../support/engines.js'
import { ask } from '../../support/envoy/client.js'
import { fileStage } from '../../support/envoy/stage.js'
import type { EnvoyOptions } from '../../support/envoy/bootstrap.js'

const POLICY = { timeout: '20s', keepReady: 0 } as const

/** The first server of priority 1, and after it those of priority 0, of which the last `ill` are UNHEALTHY. */
function below(ill: number): (ports: readonly number[]) => Record<string, unknown> {
  return ([last, ...others]) => {
    const endpoint = (port: number | undefined, health_status = 'HEALTHY') => ({
      endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
      health_status,
    })
    const well = others.length - ill
    const upper = others.map((port, i) => endpoint(port, i < well ? 'HEALTHY' : 'UNHEALTHY'))
    return {
      cluster_name: 'web',
      endpoints: [
        { priority: 0, lb_endpoints: upper },
        { priority: 1, lb_endpoints: [endpoint(last)] },
      ],
    }
  }
}

async function stageOf(path: string, ill: number, envoy: Partial<EnvoyOptions> = {}) {
  return await fileStage(path, { servers: 4, set: below(ill), envoy })
}

describe.each(engines('envoy'))('priorities of Envoy $version', ({ path }) => {
  test('the last endpoint of a lower one that gets no load is drained', async () => {
    // Two of three are healthy: 93 % go to them, so the lower one has a share until it is drained.
    await using stage = await stageOf(path, 1)
    const { a, lb, proxy, refOf } = stage
    const report = await drain(lb, refOf(a), { timeout: '20s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    const before = a.requests.length
    for (let i = 0; i < 60; i += 1) await ask(proxy.http)
    expect(a.requests.length).toBe(before)
  })

  test('where each of them panics it is refused: all hosts get requests', async () => {
    await using stage = await stageOf(path, 2)
    const { a, lb, refOf } = stage
    const error: unknown = await drain(lb, refOf(a), POLICY).catch((thrown: unknown) => thrown)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('is not drained: 0 of 1')
  })
})
