import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake as startEnvoy } from 'drainable/testing/envoy'
import { startFake, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { freePort } from '../support/haproxy.js'
import { withPlaces } from '../support/places.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

interface Outcome {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs one of the programs users would write, as a process of its own: `replace` puts this machine's
 * sockets in place of the ones it names, `globals` is what it declares and another client defines.
 */
async function runProgram(
  name: string,
  replace: Readonly<Record<string, string>>,
  globals: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'drainable-program-'))
  try {
    const text = withPlaces(
      name,
      await readFile(join(root, 'test/programs', name), 'utf8'),
      replace,
    )
    const program = join(folder, name)
    const preload = join(folder, 'globals.mjs')
    await writeFile(program, text)
    await writeFile(preload, globals)
    const args = ['--import', join(root, 'scripts/source.mjs'), '--import', preload, program]
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      timeout: 170_000,
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
    const [status] = (await once(child, 'close')) as [number | null]
    return { status, stdout, stderr }
  } finally {
    await rm(folder, { recursive: true })
  }
}

function quoted(fake: HaproxyFake): string {
  if (typeof fake.socket === 'string') return fake.socket
  throw new Error('expected a unix socket')
}

function states(fake: HaproxyFake): string[] {
  return fake.requests.flatMap(({ line }) => /set server \S+ state \w+/.exec(line) ?? [])
}

/** What passes a TCP check at every address of this machine's loopback. */
async function listenEverywhere(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((socket) => socket.destroy())
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}

/** Each process loads the whole library first: so many at a time. */
let free = 4
const queue: (() => void)[] = []

// Each is a process that waits more than it works, with stand-ins of its own.
describe.concurrent('the programs users would write', { timeout: 180_000 }, () => {
  // A hook has a limit of its own: the limit of a test begins with its turn.
  beforeEach(async () => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => queue.push(resolve))
    return () => {
      const next = queue.shift()
      if (next === undefined) free += 1
      else next()
    }
  }, 600_000)

  test('01: deploy to one server', async () => {
    await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
    const sockets = {
      '/run/haproxy/admin.sock': quoted(fake),
      '/run/haproxy-master.sock': fake.master as string,
    }
    const globals = `globalThis.install = async () => console.log('installed')`
    const { status, stdout, stderr } = await runProgram('01-deploy.ts', sockets, globals)
    expect(stderr.replaceAll(/^.*(ExperimentalWarning|Use `node).*\n?/gm, '')).not.toContain(
      'Error',
    )
    expect(status).toBe(0)
    expect(stdout).toContain('installed')
    expect(states(fake)[0]).toBe('set server web/web1 state drain')
    expect(states(fake).at(-1)).toBe('set server web/web1 state ready')
  })

  test('02: one machine out of fourteen pools on four balancers', async () => {
    await using stack = new AsyncDisposableStack()
    const names = ['p1', 'p2', 'p3', 'p4']
    const members = ['10.1.2.3', '10.1.2.4']
    const edge = async (): Promise<HaproxyFake> => {
      const pools = names.map((name, n) => {
        const servers = members.map((address) => ({
          name: `s${address.at(-1)}`,
          address,
          port: 8000 + n,
        }))
        return [name, servers] as const
      })
      return stack.use(await startFake({ pools: Object.fromEntries(pools), port: 0 }))
    }
    const [edgeA, edgeB] = [await edge(), await edge()]
    const some = Object.fromEntries(
      names.slice(1).map((name, n) => [name, members.map((host) => `${host}:${8000 + n}`)]),
    )
    const bigip = stack.use(await startBigip({ pools: some, username: 'drain' }))
    const adc = stack.use(await startCitrix({ pools: some, username: 'drain', tick: 20 }))
    const folder = await mkdtemp(join(tmpdir(), 'drainable-tickets-'))
    stack.defer(() => rm(folder, { recursive: true }))
    const socket = ({ socket: at }: HaproxyFake): string => JSON.stringify(at)
    const places = {
      "{ host: '10.0.0.2', port: 9999 }": socket(edgeA),
      "{ host: '10.0.0.3', port: 9999 }": socket(edgeB),
      "['https://bigip-a', 'https://bigip-b']": JSON.stringify([bigip.url]),
      "'https://adc'": JSON.stringify(adc.urls[0]),
      "{ ca: '/etc/ssl/corp.pem' }": `{ ca: ${JSON.stringify(bigip.ca)} }`,
      "{ fingerprint256: 'AB:CD' }": `{ ca: ${JSON.stringify(adc.ca)} }`,
      '/var/lib/drain': folder,
      // BIG-IP has the machine as one node, which is drained once for its three pools.
      'found.length !== 14': 'found.length !== 12',
    }
    const env = { BIGIP_PASSWORD: bigip.password, ADC_PASSWORD: adc.password }
    const { status, stdout, stderr } = await runProgram('02-node-maintenance.ts', places, '', env)
    expect(stderr).not.toMatch(/Error/)
    const idle = stdout.split('\n').filter((line) => / idle /.test(line))
    expect(idle).toHaveLength(12)
    for (const fake of [edgeA, edgeB]) {
      expect(states(fake).filter((line) => line.endsWith('/s3 state drain'))).toHaveLength(4)
      expect(states(fake).at(-1)).toMatch(/ state ready$/)
    }
    expect(status).toBe(0)
  })

  test('03: a roll that fails, and goes on when it is run again', async () => {
    await using checked = await listenEverywhere()
    const servers = Array.from({ length: 20 }, (_, n) => ({
      name: `web${n + 1}`,
      address: `127.0.0.${n + 1}`,
      port: checked.port,
      check: { inter: 100, rise: 1, fall: 1 },
    }))
    await using fake = await startFake({ pools: { web: servers } })
    const folder = await mkdtemp(join(tmpdir(), 'drainable-tickets-'))
    try {
      const places = {
        '/run/haproxy/admin.sock': quoted(fake),
        '/var/lib/deploy': folder,
        "'10%'": "'25%'",
        'keepReady: 30': 'keepReady: 12',
        "'terminate'": "'fail'",
      }
      const isTicket = `globalThis.isTicket = (x) => x != null`
      const failing = `globalThis.ssh = async (host) => {
        if (host.endsWith('.4')) throw new Error('no space left on device')
      }`
      const first = await runProgram('03-rolling.ts', places, `${isTicket}\n${failing}`)
      expect(first.stdout).toContain('web4 failed')
      expect(first.stderr).toContain('act failed: no space')
      expect(first.stderr).toContain("left drained: [ 'web4' ]")
      expect(first.status).toBe(1)
      const working = `globalThis.ssh = async (host, command) => console.log(host, command.at(-1))`
      const second = await runProgram('03-rolling.ts', places, `${isTicket}\n${working}`)
      expect(second.stderr).toBe('')
      expect(second.status).toBe(0)
      const lines = second.stdout.trim().split('\n')
      expect(lines.filter((line) => / 2$/.test(line))).toEqual([
        expect.stringMatching(/\.4 2$/) as unknown,
      ])
      expect(lines.filter((line) => line.endsWith(' 1')).length).toBeGreaterThan(10)
      const healthy = [...first.stdout.split('\n'), ...lines].filter((line) =>
        line.endsWith('healthy'),
      )
      expect(new Set(healthy).size).toBe(20)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('04: scale in, until removed', async () => {
    const servers = [
      { name: 'web1', address: '10.1.2.3', port: 8080 },
      { name: 'web2', address: '10.1.2.4', port: 8080 },
      { name: 'web3', address: '10.1.2.5', port: 8080 },
    ]
    await using fake = await startFake({ pools: { web: servers } })
    const globals = `
      globalThis.metrics = { gauge: () => {} }
      globalThis.putReport = async (json) => console.log(JSON.parse(json).outcome)
      globalThis.terminateInstance = async () => console.log('ended')`
    const { status, stdout } = await runProgram(
      '04-scale-in.ts',
      { '/run/haproxy/admin.sock': quoted(fake) },
      globals,
    )
    expect(stdout.trim().split('\n')).toEqual(['removed', 'ended'])
    expect(status).toBe(0)
  })

  test('05: a preStop hook drains its own pod', async () => {
    const servers = [
      { name: 'web1', address: '10.1.2.3', port: 8080 },
      { name: 'web2', address: '10.1.2.4', port: 8080 },
    ]
    await using fake = await startFake({ pools: { web: servers }, port: 0 })
    if (typeof fake.socket === 'string') throw new Error('expected TCP')
    const { host, port } = fake.socket
    const env = { LB_HOST: host, POD_IP: '10.1.2.3', GRACE_SECONDS: '20' }
    const { status, stderr } = await runProgram(
      '05-prestop.ts',
      { 'port: 9999': `port: ${port}` },
      '',
      env,
    )
    expect(status).toBe(0)
    expect(stderr).not.toMatch(/[A-Z_]{6,}:/)
    // Over TCP, without the master: idle, and what can't be known is said.
    expect(stderr).toMatch(/^web1: left .* runs under a master \(-W\) whose socket is not known/)
    expect(states(fake)).toContain('set server web/web1 state drain')
  })

  test('07: one controller drains thirty Envoys', async () => {
    const port = await freePort()
    const eds = { grpc: `http://127.0.0.1:${port}` }
    const fakes = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        startEnvoy({ pools: { web: [] }, node: `envoy-${i}`, eds }),
      ),
    )
    try {
      // The fakes speak plain gRPC; mutual TLS is tried with a real Envoy.
      const tls = "tls: { cert: '/t/c.pem', key: '/t/k.pem', clientCa: '/t/ca.pem' },"
      const places = {
        'port: 18000': `port: ${port}`,
        "host: '0.0.0.0'": "host: '127.0.0.1'",
        [tls]: '',
      }
      const lbEndpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({
        endpoint: { address: { socket_address: { address, port_value: 8080 } } },
      }))
      const set = [{ cluster_name: 'web', endpoints: [{ lb_endpoints: lbEndpoints }] }]
      const globals = `
        globalThis.proxies = async () => ${JSON.stringify(fakes.map((fake) => fake.url))}
        globalThis.loadSet = () => (${JSON.stringify(set)})`
      const { status, stdout, stderr } = await runProgram('07-envoy-fleet.ts', places, globals)
      expect(stderr).toBe('')
      expect(stdout.trim()).toBe('removed')
      expect(status).toBe(0)
    } finally {
      await Promise.all(fakes.map((fake) => fake.close()))
    }
  })

  test('06: a controller adds what is new and drains what ends', async () => {
    await using fake = await startBigip({ pools: { '/k8s/web': [] }, username: 'ctl' })
    const slice = (second: object): string =>
      JSON.stringify({
        metadata: {
          name: 'web-1',
          namespace: 'shop',
          labels: { 'kubernetes.io/service-name': 'web' },
        },
        addressType: 'IPv4',
        ports: [{ name: 'https', port: 443 }],
        endpoints: [
          { addresses: ['10.0.0.1'], conditions: { ready: true } },
          { addresses: ['10.0.0.2'], conditions: second },
        ],
      })
    const globals = `
      const stop = new AbortController()
      let now = ${slice({ ready: true })}
      let tell = () => {}
      const kept = new Map()
      Object.assign(globalThis, {
        slices: () => [now],
        synced: () => true,
        onChange: (fn) => (tell = fn),
        configMapStore: {
          get: async (k) => kept.get(k),
          set: async (k, v) => void kept.set(k, v),
          delete: async (k) => kept.delete(k),
          keys: async () => [...kept.keys()],
        },
        patchStatus: ({ drainingMembers: [one] }) => {
          if (one === undefined || stop.signal.aborted) return
          console.log('draining ' + one.name)
          stop.abort()
        },
        run: async (lead, settled) => {
          const done = lead({ spec: { pool: '/k8s/web' }, status: { drainingMembers: [] } }, stop.signal)
          await settled()
          now = ${slice({ ready: false, serving: true, terminating: true })}
          tell()
          await done
        },
      })`
    const places = {
      'https://bigip': fake.url,
      "ca: '/ca.pem'": `ca: ${JSON.stringify(fake.ca)}`,
      '  await r.done\n}': `  globalThis.loop = r
  await r.done
}
await globalThis.run(lead, () => globalThis.loop.settled())`,
    }
    const env = { F5_PASSWORD: fake.password }
    const { status, stdout, stderr } = await runProgram('06-controller.ts', places, globals, env)
    expect(stderr).toBe('')
    expect(stdout.trim()).toBe('draining /k8s/10.0.0.2:443')
    expect(status).toBe(0)
  })

  test('08: the green backend goes in, the whole blue one is drained', async () => {
    await using fake = await startFake({
      pools: { web: ['web-g1', 'web-g2', 'web-b1', 'web-b2'], blue: ['b1', 'b2'] },
    })
    const folder = await mkdtemp(join(tmpdir(), 'drainable-tickets-'))
    try {
      const places = { '/run/haproxy/admin.sock': quoted(fake), '/var/lib/bg': folder }
      const { status } = await runProgram(
        '08-blue-green.ts',
        places,
        `globalThis.errorRateHigh = async () => true`,
      )
      expect(status).toBe(0)
      const last = (member: string): string | undefined =>
        states(fake).findLast((line) => line.includes(member))
      expect(last('web/web-b1')).toBe('set server web/web-b1 state ready') // rolled back
      expect(last('blue/b1')).toBe('set server blue/b1 state maint')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('09: a third-party adapter hands its harness to the contract suite', async () => {
    const globals = `
      const names = []
      globalThis.elb = {}
      globalThis.openHarness = async () => { throw new Error('not opened here') }
      globalThis.test = (name, run, ms) => { if (typeof run !== 'function' || !(ms > 0)) throw new Error(name); names.push(name) }
      process.on('exit', () => console.log(names.length, new Set(names).size))`
    const { status, stdout, stderr } = await runProgram('09-adapter-elb.ts', {}, globals)
    expect(stderr).not.toContain('Error')
    expect(status).toBe(0)
    const [cases, distinct] = stdout.trim().split(' ').map(Number)
    expect(cases).toBeGreaterThan(20)
    expect(distinct).toBe(cases)
  })

  test('10: a script is tested on the protocol fake and the fake clock', async () => {
    const globals = `
      import assert from 'node:assert'
      globalThis.assert = assert
      const runs = []
      globalThis.test = (name, run) => runs.push(run().then(() => console.log('ok', name), (e) => { console.log('not ok', name, e); process.exitCode = 1 }))`
    const { status, stdout } = await runProgram('10-test-own-script.ts', {}, globals)
    expect(stdout).toContain('ok waits for the request')
    expect(stdout).toContain('ok gives up after 30 min')
    expect(stdout).not.toContain('not ok')
    expect(status).toBe(0)
  })
})
