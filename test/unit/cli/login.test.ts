import { describe, expect, test } from 'vitest'
import { openBalancer } from '../../../src/cli/balancers.js'
import type { Config } from '../../../src/cli/config.js'

const socket = 'haproxy:/run/haproxy/admin.sock'
const config: Config = {
  balancers: {
    edge: { url: socket },
    other: { url: 'envoy-listener+http://127.0.0.1:9901' },
    named: { url: socket, username: 'ops', passwordEnv: 'SECRET' },
    big: { url: 'bigip+https://bigip1.example' },
  },
}
const env = { DRAINABLE_USERNAME: 'ops', DRAINABLE_PASSWORD: 'hunter2' }
const flags = { username: 'ops', passwordFile: '/run/secret' }

describe('a user or a password for a product without a login', () => {
  test.each<[text: string, words: string]>([
    [socket, '--username, --password-file: haproxy asks for no user and no password'],
    ['envoy-listener+http://127.0.0.1:9901', '--username, --password-file: envoy-listener asks'],
    ['edge,other', '--username, --password-file: haproxy asks'],
  ])('is refused by its flags: %s', async (text, words) => {
    await expect(openBalancer(text, config, { ...flags, env: {} })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(words) as string,
    })
  })

  test('is refused by its fields of the configuration', async () => {
    await expect(openBalancer('named', config, { env: {} })).rejects.toThrow(
      "balancer 'named': username, passwordEnv: haproxy asks for no user and no password",
    )
  })

  test('is refused in its URL', async () => {
    await expect(
      openBalancer('envoy-listener+http://ops@127.0.0.1:9901', undefined, { env: {} }),
    ).rejects.toThrow('USER@: envoy-listener asks for no user and no password; leave it out')
  })

  test('may stand in the environment, which other commands read', async () => {
    await using lb = await openBalancer(socket, undefined, { env })
    expect(lb.name).toBe('haproxy-runtime')
  })

  test('may be given beside a product that has one', async () => {
    const given = { username: 'ops', env: { DRAINABLE_PASSWORD: 'hunter2' } }
    await using lb = await openBalancer('edge,big', config, given)
    expect(lb.instance).toContain('bigip1.example')
  })
})
