import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { citrixAdc } from 'drainable/citrix-adc'
import { drain, ready } from 'drainable'
import { type CitrixFake, startFake } from 'drainable/testing/citrix-adc'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clients, installClients } from './install.js'
import { installOrSkip } from '../../support/skipped.js'

const WEB1 = { pool: 'sg web', member: '10.0.0.1:80' }
const SCRIPTS = fileURLToPath(new URL('./', import.meta.url))

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** What a client writes to disk of the session is gone after the tests. */
let folder = ''
let clients: Clients | undefined

beforeAll(async () => {
  clients = await installOrSkip('NITRO clients', installClients)
  folder = await mkdtemp(join(tmpdir(), 'drainable-nitro-'))
}, 600_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

function start(): Promise<CitrixFake> {
  return startFake({
    tick: 50,
    ha: true,
    pools: { 'sg web': ['10.0.0.1:80', '10.0.0.2:80'] },
    vservers: { 'vs api': ['svc 1', 'svc2'] },
  })
}

async function caOf(fake: CitrixFake): Promise<string> {
  const path = join(folder, `${fake.port}.pem`)
  await writeFile(path, fake.ca)
  return path
}

function run(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env }, timeout: 60_000 }
    execFile(command, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, stdout, stderr })
    })
  })
}

describe('nitroapi', () => {
  test('logs in, disables, reads back, counts, enables, and hears every no', async ({ skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start()
    await fake.occupy(WEB1, { active: 2, queued: 1, pooled: 3 })
    await fake.occupy({ pool: 'vs api', member: 'svc 1' })
    const args = [
      join(SCRIPTS, 'nitroapi_client.py'),
      fake.url,
      await caOf(fake),
      'admin',
      'secret',
    ]
    const { code, stdout, stderr } = await run(clients.python, args)
    expect([code, stderr]).toEqual([0, ''])
    const other = { '10.0.0.2': ['UP', 'ENABLED', 'NO'] }
    expect(JSON.parse(stdout)).toEqual({
      'wrong password': null,
      'session without login': null,
      session: true,
      before: { '10.0.0.1': ['UP', 'ENABLED', 'NO'], ...other },
      disable: 0,
      disabled: { '10.0.0.1': ['GOING OUT OF SERVICE', 'DISABLED', 'YES'], ...other },
      statistics: ['GOING OUT OF SERVICE', '5', '1', 80],
      'disable service': 0,
      'service statistics': ['svc 1', '1'],
      enable: 0,
      enabled: { '10.0.0.1': ['UP', 'ENABLED', 'NO'], ...other },
      'unknown member': null,
      'superfluous key': null,
      'disable server': 0,
      'server disabled': {
        '10.0.0.1': ['UP', 'ENABLED', 'NO'],
        '10.0.0.2': ['OUT OF SERVICE', 'DISABLED', 'NO'],
      },
      save: 0,
      'session after logout': null,
    })
    expect(fake.sessions).toBe(0)
  })
})

describe('check_netscaler', () => {
  async function check(fake: CitrixFake, ...args: string[]): Promise<Ended> {
    const host = ['-H', '127.0.0.1', '-P', String(fake.port), '-u', 'admin', '-p', 'secret']
    const env = { REQUESTS_CA_BUNDLE: await caOf(fake) }
    return run(clients?.checkNetscaler ?? '', [...host, ...args], env)
  }

  test('sees a member that our drain took out, and sees it come back', async ({ skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start()
    await using adc = citrixAdc({
      url: fake.urls,
      username: 'admin',
      password: 'secret',
      tls: { ca: fake.ca },
      freshness: '100ms',
    })
    const quorum = ['-C', 'servicegroup', '-n', 'sg web', '-w', '60', '-c', '40']
    expect((await check(fake, ...quorum)).stdout).toMatch(
      /^OK - sg web .* 100\.00% \(UP\/DOWN\): 2\/0/,
    )
    expect((await drain(adc, WEB1, { timeout: '20s' })).outcome).toBe('idle')
    const out = await check(fake, ...quorum)
    expect(out.code).toBe(1)
    expect(out.stdout).toMatch(/^WARNING - sg web .* 50\.00% \(UP\/DOWN\): 1\/1/)
    expect(out.stdout).toContain('[CRITICAL] 10.0.0.1 (10.0.0.1:80) is OUT OF SERVICE')
    await ready(adc, WEB1)
    expect((await check(fake, ...quorum)).stdout).toMatch(/^OK/)
  })

  test('reads states, counts and role, and is refused a wrong password', async ({ skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start()
    await fake.occupy({ pool: 'vs api', member: 'svc 1' }, { active: 3 })
    const seen = await Promise.all([
      check(fake, '-C', 'state', '-o', 'lbvserver'),
      check(fake, '-C', 'state', '-o', 'service'),
      check(fake, '-C', 'above', '-o', 'service', '-n', 'activetransactions', '-w', '1', '-c', '2'),
      check(fake, '-C', 'hastatus'),
      check(fake, '-C', 'servicegroup', '-n', 'nope'),
      check(fake, '-C', 'hastatus', '-p', 'wrong'),
    ])
    expect(seen.map(({ code }) => code)).toEqual([0, 0, 2, 0, 3, 3])
    expect(seen[2].stdout).toContain('activetransactions=3.0')
    expect(seen[4].stdout).toContain('Resource not found: servicegroup/nope')
    expect(seen[5].stdout).toContain('Authentication failed')
    expect(fake.sessions).toBe(0)
  })
})

describe('the NITRO module of Ansible', () => {
  async function ask(
    fake: CitrixFake,
    args: Record<string, unknown>,
  ): Promise<Record<string, unknown>> {
    const { ansible = '', collections = '' } = clients ?? {}
    const module = {
      nsip: `127.0.0.1:${fake.port}`,
      nitro_protocol: 'https',
      nitro_user: 'admin',
      nitro_pass: 'secret',
      ...args,
    }
    const name = 'community.network.netscaler_nitro_request'
    const { stdout } = await run(ansible, ['localhost', '-m', name, '-a', JSON.stringify(module)], {
      ANSIBLE_COLLECTIONS_PATH: collections,
      ANSIBLE_HOME: folder,
      ANSIBLE_DEPRECATION_WARNINGS: 'false',
      SSL_CERT_FILE: await caOf(fake),
    })
    const json = /=> (\{.*\})\s*$/s.exec(stdout)?.[1]
    if (json === undefined) throw new Error(`no answer of Ansible: ${stdout}`)
    return JSON.parse(json) as Record<string, unknown>
  }

  test('disables, reads back and enables with header authentication', async ({ skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start()
    await fake.occupy(WEB1)
    const member = { servicegroupname: 'sg web', servername: '10.0.0.1', port: 80 }
    const action = { operation: 'action', resource: 'servicegroup' }
    const disabled = await ask(fake, {
      ...action,
      action: 'disable',
      attributes: { ...member, graceful: 'YES', delay: 0 },
    })
    expect(disabled).toMatchObject({ changed: true, nitro_errorcode: 0 })
    const read = await ask(fake, {
      operation: 'get',
      resource: 'servicegroup_servicegroupmember_binding',
      name: 'sg%2520web',
    })
    expect(read['nitro_object']).toMatchObject([
      { servername: '10.0.0.1', svrstate: 'GOING OUT OF SERVICE' },
      { servername: '10.0.0.2', svrstate: 'UP' },
    ])
    const refused = await ask(fake, {
      ...action,
      action: 'disable',
      attributes: { ...member, port: 81 },
    })
    // This module loses the body of an error under newer Ansible: the status is what is left.
    expect(refused).toMatchObject({ changed: false, http_response_data: { status: 404 } })
    const wrong = await ask(fake, {
      ...action,
      action: 'enable',
      attributes: member,
      nitro_pass: 'x',
    })
    expect(wrong).toMatchObject({ changed: false, http_response_data: { status: 401 } })
    expect(await ask(fake, { ...action, action: 'enable', attributes: member })).toMatchObject({
      changed: true,
    })
    expect(fake.look(WEB1)).toMatchObject({ svrstate: 'UP', active: 1 })
  })

  test('adds a server and binds it, unbinds it and deletes it', async ({ skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start()
    const binding = 'servicegroup_servicegroupmember_binding'
    const three = { servicegroupname: 'sg web', servername: 'web 3', port: 8080 }
    const added = await ask(fake, {
      operation: 'add',
      resource: 'server',
      attributes: { name: 'web 3', ipaddress: '10.0.0.3' },
    })
    expect(added).toMatchObject({ nitro_errorcode: 0 })
    const bound = await ask(fake, { operation: 'add', resource: binding, attributes: three })
    expect(bound).toMatchObject({ nitro_errorcode: 0 })
    expect(fake.look({ pool: 'sg web', member: 'web 3:8080' }).svrstate).toBe('UP')
    const gone = await ask(fake, {
      operation: 'delete_by_args',
      resource: `${binding}/sg%2520web`,
      args: { servername: 'web%203', port: 8080 },
    })
    expect(gone).toMatchObject({ nitro_errorcode: 0 })
    const deleted = await ask(fake, { operation: 'delete', resource: 'server', name: 'web%25203' })
    expect(deleted).toMatchObject({ nitro_errorcode: 0 })
  })
})
