import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { drain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'

/** A filter that keeps its worker from everything else, for as many seconds as a request says. */
const SPIN = {
  name: 'envoy.filters.http.lua',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: {
      inline_string: `function envoy_on_request(handle)
  local spin = handle:headers():get("x-spin")
  if spin ~= nil then
    local till = os.time() + tonumber(spin)
    while os.time() < till do end
  end
end`,
    },
  },
}

/** Sends a request on a connection of its own. */
function send(port: number, headers: Record<string, string> = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const one = request({ port, host: '127.0.0.1', headers, agent: false }, (response) => {
      response.resume().on('end', resolve)
    })
    one.on('error', reject).end()
  })
}

// The rows show what the main thread has taken. A worker that stands still sends by its old set when it goes on.
describe.each(engines('envoy'))('a worker of Envoy $version that stands still', ({ path }) => {
  test('keeps its proxy from idle until it has gone on', async () => {
    await using dir = await workDir()
    await using one = await startBackend()
    await using other = await startBackend()
    const file = join(dir.path, 'web.json')
    const at = ({ port }: { readonly port: number }) => ({
      endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
    })
    const set = {
      '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
      cluster_name: 'web',
      endpoints: [{ lb_endpoints: [at(one), at(other)] }],
    }
    writeFileSync(file, JSON.stringify({ resources: [set] }))
    await using proxy = await startEnvoy({ path, eds: { file }, workers: 1, httpFilters: [SPIN] })
    const endpoints = fileEndpoints({ cluster: 'web', path: file })
    await using lb = envoy({ endpoints, admin: [proxy.admin] })
    await send(proxy.http)
    let isOver = false
    const spun = send(proxy.http, { 'x-spin': '4' }).then(() => (isOver = true))
    await expect
      .poll(() => proxy.get('/stats?filter=^http.in.downstream_rq_active'))
      .toMatch(/: [1-9]/)
    const member = { pool: 'web', member: `127.0.0.1:${one.port}` }
    const wasOver = await drain(lb, member, { timeout: '60s' }, async (report) => {
      expect(report.members[0]?.verifiedIdle).toBe(true)
      return isOver
    })
    expect(wasOver).toBe(true)
    await spun
  })
})
