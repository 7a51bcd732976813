import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { drain } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake, type BigipFake, type BigipVersion } from 'drainable/testing/f5-bigip'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installClients, type Clients } from './install.js'
import { installOrSkip } from '../../support/skipped.js'

const SCRIPTS = fileURLToPath(new URL('./', import.meta.url))
const NAMES = ['10.0.0.1:80', '10.0.0.2%1:80', '2001:db8::1.80'] as const

let clients: Clients | undefined
let folder = ''

beforeAll(async () => {
  clients = await installOrSkip('BIG-IP clients', installClients)
  folder = await mkdtemp(join(tmpdir(), 'drainable-bigip-'))
}, 600_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

function start(version: BigipVersion): Promise<BigipFake> {
  return startFake({ version, pair: true, pools: { web: NAMES } })
}

async function caOf(fake: BigipFake): Promise<string> {
  const path = join(folder, `${new URL(fake.url).port}.pem`)
  await writeFile(path, fake.ca)
  return path
}

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function run(file: string, args: readonly string[], env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    const options = {
      timeout: 110_000,
      maxBuffer: 16 * 1024 * 1024,
      env: { PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8', HOME: folder, ...env },
    }
    execFile(file, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, stdout, stderr })
    })
  })
}

/** What every client reads on its way, and what it is told of mistakes. */
const STEPS = {
  before: ['monitor-enabled', 'up'],
  disabled: ['user-disabled', 'up'],
  offline: ['user-disabled', 'user-down'],
  'read back': ['user-disabled', 'user-down'],
  enabled: ['monitor-enabled', 'up'],
}

describe.each(['13.1', '15.1', '17.1'] as const)('BIG-IP %s, driven by others', (version) => {
  test.for(['bigrest_client.py', 'f5sdk_client.py'])('%s', async (script, { skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start(version)
    const ca = await caOf(fake)
    await fake.occupy({ pool: 'web', member: NAMES[0] }, 3)
    const args = ['-W', 'ignore', join(SCRIPTS, script), fake.url, ca, fake.username, fake.password]
    const { code, stdout, stderr } = await run(clients.python, args, {})
    expect(stderr, stderr).not.toContain('Traceback')
    expect(code).toBe(0)
    const result = JSON.parse(stdout) as Record<string, unknown> & {
      steps: Record<string, Record<string, unknown>>
    }
    expect(Object.keys(result.steps)).toEqual(NAMES)
    for (const name of NAMES) expect(result.steps[name]).toMatchObject(STEPS)
    expect(result.steps[NAMES[0]]?.['connections']).toBe(3)
    expect(result).toMatchObject({
      'unknown member': 404,
      'unknown exists': false,
      'wrong password': 401,
      node: ['user-disabled', 'unchecked'],
      // the state written with a new member is dropped
      created: ['monitor-enabled', 'up'],
      deleted: true,
      members: [...NAMES].map((name) => `/Common/${name}`),
    })
    if (script.startsWith('bigrest')) {
      expect(result).toMatchObject({
        'read word written': 400,
        'created twice': 409,
        'after transaction': ['user-disabled', 'user-disabled'],
        'member of disabled node': 'disabled-by-parent',
      })
    } else {
      expect(result).toMatchObject({ put: ['user-disabled', 'up'], role: 'ACTIVE' })
    }
    // every path came with its names escaped exactly once
    for (const { path } of fake.requests) expect(path).not.toMatch(/%1:|%2525/)
  })

  // half a minute of Ansible starting up: once is enough, as its requests are the same
  if (version !== '15.1') return
  test('f5networks.f5_modules', async ({ skip }) => {
    if (clients === undefined) return skip()
    await using fake = await start(version)
    const ca = await caOf(fake)
    const url = new URL(fake.url)
    const vars = {
      address: url.hostname,
      rest_port: url.port,
      user: fake.username,
      secret: fake.password,
    }
    const { code, stdout } = await run(
      clients.playbook,
      [
        ...['-i', 'localhost,', '-e', `ansible_python_interpreter=${clients.python}`],
        ...['-e', JSON.stringify(vars), join(SCRIPTS, 'playbook.yml')],
      ],
      {
        SSL_CERT_FILE: ca,
        ANSIBLE_COLLECTIONS_PATH: clients.collections,
        ANSIBLE_HOME: join(folder, 'ansible'),
        ANSIBLE_LOCALHOST_WARNING: 'False',
      },
    )
    expect(code, stdout).toBe(0)
    expect(fake.state({ pool: 'web', member: NAMES[1] })).toBe('ready')
    expect(fake.state({ pool: 'web', member: NAMES[1] }, fake.units[1])).toBe('ready')
  })
})

test('an enable of another client in mid-drain overrules the drain', async ({ skip }) => {
  if (clients === undefined) return skip()
  await using fake = await start('15.1')
  const ca = await caOf(fake)
  const { url, username, password } = fake
  await using lb = f5Bigip({
    url,
    username,
    password,
    tls: { ca },
    freshness: '10ms',
    minInterval: '20ms',
  })
  const member = { pool: 'web', member: NAMES[0] }
  await fake.occupy(member)
  const code = [
    'import sys',
    'from bigrest.bigip import BIGIP',
    'device = BIGIP(sys.argv[1], sys.argv[3], sys.argv[4], request_token=True, session_verify=sys.argv[2])',
    'device.modify("/mgmt/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80",',
    '    {"session": "user-enabled", "state": "user-up"})',
  ].join('\n')
  let enabled: Promise<Ended> | undefined
  const { python } = clients
  const error: unknown = await drain(lb, member, {
    timeout: '60s',
    onEvent: (event) => {
      if (event.type !== 'phase') return
      enabled ??= run(python, ['-c', code, new URL(url).host, ca, username, password], {})
    },
  }).catch((e: unknown) => e)
  expect((await enabled)?.stderr).toBe('')
  expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
})
