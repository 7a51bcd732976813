/** Where the command finds its login, and where it keeps its tickets. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { TestIo } from '../../support/command.js'
import { haproxyUrl } from '../../support/haproxy-url.js'

const PASSWORD = 'Hid-den-77'

/** Writes a file into a user's home, and gives its path. */
function write(io: TestIo, name: string, text: string): string {
  const file = join(io.home, name)
  writeFileSync(file, text)
  return file
}

describe.concurrent('a login is found', () => {
  test.each([
    ['in DRAINABLE_USERNAME', {}, (user: string) => ({ DRAINABLE_USERNAME: user })],
    ['in --username', { flag: true }, () => ({})],
    ['in the URL', { url: true }, () => ({})],
  ] as const)('%s', async (_, { flag = false, url = false }: Place, env) => {
    await using fake = await startDataplane({ pools: { web: ['s1'] }, password: PASSWORD })
    using io = new TestIo({ ...env(fake.username), DRAINABLE_PASSWORD: PASSWORD })
    const at = url ? fake.url.replace('//', `//${fake.username}@`) : fake.url
    const flags = flag ? ['--username', fake.username] : []
    expect(await io.document('status', `dataplane+${at}`, ...flags)).toMatchObject({ exitCode: 0 })
  })

  test('in the first line of DRAINABLE_PASSWORD_FILE', async () => {
    await using fake = await startDataplane({ pools: { web: ['s1'] }, password: PASSWORD })
    using io = new TestIo({ DRAINABLE_USERNAME: fake.username })
    io.env['DRAINABLE_PASSWORD_FILE'] = write(io, 'secret', `${PASSWORD}\nmore\n`)
    expect(await io.document('status', `dataplane+${fake.url}`)).toMatchObject({ exitCode: 0 })
  })

  test.each([
    ['passwordFile', { passwordFile: 'secret' }],
    ['passwordEnv', { passwordEnv: 'LB_PASSWORD' }],
  ])('by %s of a configuration', async (_, login) => {
    await using fake = await startDataplane({ pools: { web: ['s1'] }, password: PASSWORD })
    using io = new TestIo({ LB_PASSWORD: PASSWORD })
    write(io, 'secret', PASSWORD)
    const edge = { url: `dataplane+${fake.url}`, username: fake.username, ...login }
    const config = write(io, 'drainable.json', JSON.stringify({ balancers: { edge } }))
    const ended = await io.document('status', 'edge', '--config', config)
    expect(ended).toMatchObject({ exitCode: 0 })
  })
})

interface Place {
  readonly flag?: boolean
  readonly url?: boolean
}

describe.concurrent('a ticket is kept', () => {
  const ALL = ['flag', 'config', 'env', 'xdg', '.local/state/drainable'] as const

  test.each(ALL.map((place, i) => [place, i] as const))(
    'in %s before what follows',
    async (place, i) => {
      await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
      using io = new TestIo()
      const at = (name: string): string => join(io.home, name)
      const has = (name: (typeof ALL)[number]): boolean => ALL.indexOf(name) >= i
      if (has('env')) io.env['DRAINABLE_TICKETS'] = at('env')
      if (has('xdg')) io.env['XDG_STATE_HOME'] = at('xdg')
      const tickets = has('config') ? { tickets: 'config' } : {}
      const settings = JSON.stringify({ balancers: { edge: haproxyUrl(fake) }, ...tickets })
      const flags = has('flag') ? ['--tickets', at('flag')] : []
      const config = write(io, 'drainable.json', settings)
      const ended = await io.document('drain', 'edge', 'web/web1', '--config', config, ...flags)
      const folder = at(place === 'xdg' ? 'xdg/drainable' : place)
      expect(readdirSync(folder)).toContain(`${ended.ticket}.json`)
    },
  )

  test('nowhere with --no-tickets', async () => {
    await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
    using io = new TestIo()
    const ended = await io.document('drain', haproxyUrl(fake), 'web/web1', '--no-tickets')
    expect([ended.exitCode, ended.ticket]).toEqual([0, undefined])
    expect(existsSync(join(io.home, '.local'))).toBe(false)
  })
})

// Envoy takes both spellings of a field in JSON, and protobuf's own printers write the second.
test.each(['cluster_name', 'clusterName'])(
  'the cluster of an endpoint file is found by %s',
  async (name) => {
    using io = new TestIo()
    const address = { socket_address: { address: '10.0.0.1', port_value: 80 } }
    const set = {
      '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
      [name]: 'web',
      endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
    }
    const file = write(io, 'web.json', JSON.stringify({ resources: [set] }))
    const { error } = await io.document('status', `envoy+file:${file}?admin=http://127.0.0.1:1`)
    expect(error?.code).toBe('UNREACHABLE')
  },
)
