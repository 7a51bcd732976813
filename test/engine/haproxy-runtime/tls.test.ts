/** TLS before the stats socket, and sockets that are mistaken for it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { drain, isDrainableError, select, startDrain } from 'drainable'
import { haproxyRuntime, type HaproxyRuntimeOptions } from 'drainable/haproxy-runtime'
import { describe, it } from 'vitest'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { lab, member, site, web1, type Config, type Lab } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

const server = selfSignedCertificate()
const client = selfSignedCertificate({ commonName: 'operator' })
const stranger = selfSignedCertificate()
const { cert, key } = client

/** HAProxy takes `ssl crt` on a `stats socket` and ignores it, so a frontend of its own stands before it. */
const config: Config = (port, dir) => {
  writeFileSync(join(dir, 'server.pem'), server.cert + server.key)
  writeFileSync(join(dir, 'clients.pem'), client.cert)
  return `${site(port, 'web')}
frontend f_cli
  mode tcp
  bind 127.0.0.1:${port('tls')} ssl crt ${dir}/server.pem ca-file ${dir}/clients.pem verify required
  default_backend cli
backend cli
  mode tcp
  server cli unix@${dir}/admin.sock
`
}

function atTls({ haproxy }: Lab): HaproxyRuntimeOptions['socket'] {
  return { host: '127.0.0.1', port: haproxy.port('tls') }
}

async function refusal(options: HaproxyRuntimeOptions): Promise<unknown> {
  await using lb = haproxyRuntime(options)
  return await select(lb, { pool: 'web' }).catch((error: unknown) => error)
}

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent.for([
    ['its CA', { ca: server.ca, cert, key }],
    ['its fingerprint', { fingerprint256: server.fingerprint256, cert, key }],
  ] as const)('a drain goes on over TLS through a reload (%s)', async ([, tls], { expect }) => {
    await using it = await lab({ engine, config })
    const { haproxy, s1 } = it
    await using lb = it.provider({ socket: atTls(it), tls })
    const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    await drained.inForce
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    await haproxy.reload()
    await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'the old worker')
    s1.release()
    expect((await answer).cut).toBe(false)
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
    expect(busyAtIdle).toBe(0)
  })

  it.concurrent('a drain held over TLS lets old workers end', async ({ expect }) => {
    await using it = await lab({ engine, config })
    const { haproxy } = it
    const tls = { ca: server.ca, cert, key }
    await using lb = it.provider({ socket: atTls(it), tls })
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
    for (let count = 0; count < 2; count += 1) {
      const before = await haproxy.pid()
      await haproxy.reload()
      await until(async () => (await haproxy.stat('web', 's1', 'status')) === 'MAINT', 'held')
      await until(async () => !(await haproxy.processes()).includes(before), 'the old worker ends')
    }
    expect(drained.report().members[0]).toMatchObject({ phase: 'idle', verifiedIdle: true })
  })

  it.concurrent(
    'an error that keeps TLS from working is told, and not retried',
    async ({ expect }) => {
      await using it = await lab({ engine, config })
      const socket = atTls(it)
      const { ca } = server
      for (const [tls, code, words] of [
        [{ ca }, 'UNAUTHENTICATED', /tls\.cert and tls\.key/],
        [{ ca, cert: stranger.cert, key: stranger.key }, 'UNAUTHENTICATED', /unknown ca/],
        [{ cert, key }, 'UNREACHABLE', new RegExp(`tls\\.ca.*'${server.fingerprint256}'`)],
        [{ ca: stranger.ca, cert, key }, 'UNREACHABLE', /tls\.ca/],
        [{ fingerprint256: stranger.fingerprint256, cert, key }, 'UNREACHABLE', /names another/],
        [{ ca, servername: 'elsewhere', cert, key }, 'UNREACHABLE', /elsewhere/],
      ] as const) {
        const error = await refusal({ socket, tls })
        expect(error, String(words)).toMatchObject({ code, retryable: false })
        expect(String(error)).toMatch(words)
        expect(String(error)).not.toContain('PRIVATE KEY')
      }
      const plain = await refusal({ socket: it.haproxy.socket, tls: { ca } })
      expect(plain).toMatchObject({ code: 'UNREACHABLE', retryable: false })
      expect(String(plain)).toMatch(/does not speak TLS/)
      const unsaid = await refusal({ socket })
      expect(isDrainableError(unsaid)).toBe(true)
      expect(String(unsaid)).toMatch(/give tls/)
    },
  )

  // So what is configured as TLS would go over the wire in the clear: with tls it is refused, by name.
  it.concurrent("'ssl' on a stats socket is ignored by HAProxy", async ({ expect }) => {
    const folder = mkdtempSync(join(tmpdir(), 'drainable-'))
    writeFileSync(join(folder, 'server.pem'), server.cert + server.key)
    const global = `  stats socket ipv4@127.0.0.1:\${CLI} level admin ssl crt ${folder}/server.pem`
    await using it = await lab({ engine, global })
    rmSync(folder, { recursive: true })
    const socket = { host: '127.0.0.1', port: it.haproxy.cliPort }
    const error = await refusal({ socket, tls: { ca: server.ca } })
    expect(error).toMatchObject({ code: 'UNREACHABLE', retryable: false })
    expect(String(error)).toMatch(/ignores 'ssl' on a 'stats socket'/)
  })

  it.concurrent(
    'a master socket given as socket, or a wrong master, is refused',
    async ({ expect }) => {
      await using it = await lab({ engine })
      await using other = await Haproxy.start({ engine, config: (port) => site(port, 'web') })
      const { socket, master } = it.haproxy
      for (const [options, words] of [
        [{ socket: master }, /is the master socket .*give it as 'master'/],
        [{ socket: master, master }, /is the master socket/],
        [{ socket, master: socket }, /is not a master socket/],
        [{ socket, master: other.master }, /not the one of the process that serves/],
      ] as const) {
        const from = performance.now()
        const error = await refusal(options)
        expect(error, String(words)).toMatchObject({ code: 'INVALID_OPTIONS', retryable: false })
        expect(String(error)).toMatch(words)
        expect(performance.now() - from).toBeLessThan(10_000)
      }
      expect(await it.haproxy.stat('web', 's1', 'status')).toBe('no check')
    },
  )

  it.concurrent('sockets are spelled as HAProxy spells them', async ({ expect }) => {
    const name = `drainable-${engine.version}-${process.pid}`
    const global = `  stats socket abns@${name} level admin
  stats socket ipv4@127.0.0.1:\${CLI} level admin
  stats socket ipv6@[::1]:\${CLI} level admin`
    await using it = await lab({ engine, global })
    const { socket, master, cliPort } = it.haproxy
    for (const spelled of [
      `unix@${socket}`,
      `abns@${name}`,
      `ipv4@127.0.0.1:${cliPort}`,
      `ipv6@[::1]:${cliPort}`,
    ]) {
      await using lb = haproxyRuntime({ socket: spelled, master: `unix@${master}` })
      const report = await drain(lb, web1, { timeout: '10s' })
      expect(member(report), spelled).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      await it.haproxy.cli('set server web/s1 state ready')
    }
  })
})
