import { isDrainableError } from 'drainable'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { change, connect, context, look, present } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }

test('over TLS the fake is known by authority or fingerprint only', async () => {
  await using fake = await startFake({ tls: true })
  expect(fake.url).toMatch(/^https:/)
  await using byAuthority = connect(fake, { tls: { ca: fake.ca } })
  expect((await present(byAuthority, WEB1)).own).toBe('ready')
  await using byFingerprint = connect(fake, { tls: { fingerprint256: fake.fingerprint256 } })
  expect((await present(byFingerprint, WEB1)).own).toBe('ready')
  await using trusting = connect(fake)
  const error: unknown = await trusting.observe([WEB1], context()).catch((e: unknown) => e)
  expect(isDrainableError(error, 'UNREACHABLE')).toBe(true)
})

test('a state is judged by what was asked to hold', async () => {
  await using fake = await startFake()
  await using lb = connect(fake)
  const end = await fake.occupy(WEB1)
  const leave = await fake.queue(WEB1)
  expect((await look(lb, WEB1)).scopes[0]).toMatchObject({ active: 1, queued: 1, arrivals: 1 })
  await change(lb, { kind: 'hold', ref: WEB1, to: 'maint' })
  expect((await look(lb, WEB1)).scopes[0]).toMatchObject({ active: 1, queued: 1 })
  await end()
  await end()
  await leave()
  expect((await look(lb, WEB1)).scopes[0]).toMatchObject({ active: 0, queued: 0 })
})

test('a refused removal of a busy server leaves it in maint', async () => {
  await using fake = await startFake()
  const end = await fake.occupy(WEB1)
  const path = `${fake.url}/v3/services/haproxy/runtime/backends/web/servers/web1`
  const headers = { authorization: `Basic ${Buffer.from('admin:secret').toString('base64')}` }
  const refused = await request(path, { method: 'DELETE', headers })
  expect(refused.statusCode).toBe(500)
  expect(await refused.body.text()).toContain('still has connections attached')
  await using lb = connect(fake)
  expect((await present(lb, WEB1)).own).toBe('maint')
  await end()
  expect((await request(path, { method: 'DELETE', headers })).statusCode).toBe(204)
})

test.each(['4.0', '1.9', 'latest'])('version %s is refused', async (version) => {
  await expect(startFake({ version })).rejects.toThrow('expected such as')
})

test('an https URL on its http port is told what to do', async () => {
  await using fake = await startFake()
  await using lb = connect({ url: fake.url.replace('http:', 'https:') })
  const call = lb.describe(context())
  await expect(call).rejects.toThrow('expected an https port, or an http:// URL')
})
