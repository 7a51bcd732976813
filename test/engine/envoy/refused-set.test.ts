import { describe, expect, test } from 'vitest'
import { drain, isDrainableError } from 'drainable'
import { envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { until } from '../../support/wait.js'

/** Envoy refuses a factor of 0, and with it the whole set. */
const BAD = { ...setOf([8_080, 8_081]), policy: { overprovisioning_factor: 0 } }
const REF = { pool: 'web', member: '127.0.0.1:8080' }
const POLICY = { timeout: '4s', keepReady: 0 } as const

describe.each(engines('envoy'))('a set that Envoy $version refuses', ({ path }) => {
  test('is told in the words of Envoy, by gRPC', async () => {
    const sink = grpcEndpoints({ port: 0, initial: [BAD] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { grpc: port } })
    admin.push(proxy.admin)
    const error: unknown = await drain(lb, REF, POLICY).catch((thrown: unknown) => thrown)
    expect(isDrainableError(error, 'REJECTED') && error.message).toContain('OverprovisioningFactor')
  })

  test('is told as refused, by file', async () => {
    await using dir = await workDir()
    const path_ = `${dir.path}/web.json`
    await writeEds(path_, [BAD])
    await using proxy = await startEnvoy({ path, eds: { file: path_ } })
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: path_ }),
      admin: [proxy.admin],
    })
    const error: unknown = await drain(lb, REF, POLICY).catch((thrown: unknown) => thrown)
    expect(isDrainableError(error) && error.message).toContain('it refused the set')
  })

  test('is told as refused, by REST', async () => {
    const sink = restEndpoints({ port: 0, initial: [BAD] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({ path, eds: { rest: port } })
    admin.push(proxy.admin)
    const error: unknown = await drain(lb, REF, POLICY).catch((thrown: unknown) => thrown)
    expect(isDrainableError(error) && error.message).toContain('it refused the set')
  })
})
