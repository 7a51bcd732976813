import { inspect } from 'node:util'
import { drain, isDrainableError } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { expect, test } from 'vitest'
import { connect, ctx, lines, present, rig, until, WEB1, WEB2 } from './rig.js'

const LOGIN = 'POST /mgmt/shared/authn/login'

test('one login, one request at a time, and a logout at the end', async () => {
  await using it = await rig()
  await Promise.all(Array.from({ length: 8 }, () => it.lb.observe([WEB1, WEB2], ctx())))
  expect(lines(it.fake).filter((line) => line === LOGIN)).toHaveLength(1)
  expect(it.fake.peak).toBe(1)
  expect(it.fake.tokens).toBe(1)
  await it.lb.close()
  expect(it.fake.tokens).toBe(0)
  expect(lines(it.fake).at(-1)).toMatch(/^DELETE \/mgmt\/shared\/authz\/tokens\//)
})

test('an expired token is replaced, and the request repeated', async () => {
  await using it = await rig()
  await present(it.lb, WEB1)
  it.fake.expireTokens()
  await present(it.lb, WEB1)
  expect(lines(it.fake).filter((line) => line === LOGIN)).toHaveLength(2)
})

test("a token is renewed before it expires by the device's clock", async () => {
  await using it = await rig({ tokenTimeout: 1, clockSkew: -86_400_000 })
  await present(it.lb, WEB1)
  await until('it is nearly over', async () => {
    await present(it.lb, WEB1)
    return lines(it.fake).filter((line) => line === LOGIN).length === 2
  })
  expect(it.fake.requests.every(({ status }) => status === 200)).toBe(true)
  expect(it.fake.tokens).toBe(1)
})

test('a valid token that is refused now and then is sent again', async () => {
  await using it = await rig()
  await present(it.lb, WEB1)
  const body = {
    code: 401,
    message: 'Authorization failed: no user authentication header or token detected. Uri:x',
  }
  it.fake.fail({ match: /members\/stats/, how: 'status', status: 401, body, times: 1 })
  await present(it.lb, WEB1)
  expect(lines(it.fake).filter((line) => line === LOGIN)).toHaveLength(1)
})

const UNSEEN = {
  code: 401,
  message: 'Authorization failed: no user authentication header or token detected. Uri:x',
}

test('credentials that are not seen twice are no refused password', async () => {
  await using it = await rig({}, { auth: 'basic' })
  await present(it.lb, WEB1)
  it.fake.fail({ match: /members\/stats/, how: 'status', status: 401, body: UNSEEN, times: 2 })
  await present(it.lb, WEB1)
})

test('credentials that are never seen leave the password to be sent again', async () => {
  await using it = await rig({}, { auth: 'basic' })
  const end = it.fake.fail({ how: 'status', status: 401, body: UNSEEN })
  await expect(it.lb.observe([WEB1], ctx())).rejects.toMatchObject({
    code: 'CONFLICT',
    retryable: true,
  })
  await end()
  await present(it.lb, WEB1)
})

test('a token that has expired is deleted, as it counts until its time is over', async () => {
  await using it = await rig()
  await present(it.lb, WEB1)
  const body = { code: 401, message: 'X-F5-Auth-Token has expired.' }
  it.fake.fail({ match: /members\/stats/, how: 'status', status: 401, body, times: 1 })
  await present(it.lb, WEB1)
  expect(it.fake.tokens).toBe(1)
})

test('nothing of a login answer that is no JSON is printed', async () => {
  await using it = await rig()
  const body = '{"token": {"token": "S3CRETTOKEN", timeout}'
  it.fake.fail({ match: /authn\/login/, how: 'status', status: 200, body })
  const error: unknown = await it.lb.observe([WEB1], ctx()).catch((thrown: unknown) => thrown)
  expect(isDrainableError(error, 'MALFORMED_REPLY')).toBe(true)
  expect(inspect(error, { depth: 9 })).not.toContain('S3CRET')
})

test('a wrong password is reported at once, sent once, and never shown', async () => {
  await using it = await rig()
  const lb = connect(it.fake, { password: 'not the password' })
  for (let i = 0; i < 3; i += 1) {
    const error: unknown = await lb.observe([WEB1], ctx()).catch((e: unknown) => e)
    expect(isDrainableError(error, 'UNAUTHENTICATED')).toBe(true)
    expect(JSON.stringify([String(error), (error as Error).stack])).not.toContain(
      'not the password',
    )
  }
  expect(lines(it.fake)).toEqual([LOGIN])
  await lb.close()
})

test('a rotated password is asked for again', async () => {
  const passwords = ['old', 'secret']
  await using it = await rig({}, { password: () => passwords.shift() ?? 'secret' })
  await present(it.lb, WEB1)
  expect(passwords).toEqual([])
})

test('Basic credentials are used when no token is left', async () => {
  await using it = await rig({ maxTokens: 0 })
  await present(it.lb, WEB1)
  expect(it.fake.requests.at(-1)?.auth).toBe('basic')
})

test('a login that needs Basic credentials too gets them', async () => {
  await using it = await rig({ loginNeedsBasic: true })
  await present(it.lb, WEB1)
})

test('a login whose credentials were not seen is sent again', async () => {
  await using it = await rig()
  const message = 'Authorization failed: no user authentication header or token detected.'
  const body = { code: 401, message }
  it.fake.fail({ match: /authn\/login/, how: 'status', status: 401, body, times: 2 })
  await present(it.lb, WEB1)
  expect(lines(it.fake).slice(0, 3)).toEqual([LOGIN, LOGIN, LOGIN])
})

test('a page that refuses the password is not asked a second time', async () => {
  await using it = await rig()
  const body = '<html><title>401</title>Authentication failed.</html>'
  it.fake.fail({ match: /authn\/login/, how: 'status', status: 401, body })
  await expect(present(it.lb, WEB1)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  expect(lines(it.fake)).toEqual([LOGIN])
})

test('a page that needs Basic credentials has had them already', async () => {
  await using it = await rig()
  const body = '<html><title>401 F5 Authorization Required</title></html>'
  it.fake.fail({ match: /authn\/login/, how: 'status', status: 401, body })
  const { clock } = ctx()
  let now = 0
  const later = { ...ctx(), clock: { ...clock, now: () => clock.now() + now } }
  const look = () => it.lb.observe([WEB1], later)
  await expect(look()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  expect(lines(it.fake)).toEqual([LOGIN])
  now = 30_000
  await expect(look()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  expect(lines(it.fake)).toEqual([LOGIN, LOGIN])
})

test('by its rights a guest reads, and an operator drains but cuts nothing', async () => {
  await using guest = await rig({ role: 'guest' })
  await present(guest.lb, WEB1)
  const error: unknown = await drain(guest.lb, WEB1, { timeout: '5s' }).catch((e: unknown) => e)
  expect(isDrainableError(error, 'FORBIDDEN')).toBe(true)
  expect(lines(guest.fake).filter((line) => line === LOGIN)).toHaveLength(1)

  await using operator = await rig({ role: 'operator' })
  const [held] = await operator.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
  expect(held).toMatchObject({ status: 'applied' })
  const [cut] = await operator.lb.apply([{ kind: 'terminate', ref: WEB1 }], ctx())
  expect(cut).toMatchObject({ status: 'rejected', error: { code: 'FORBIDDEN' } })
})

test('a certificate is trusted by authority, by pin, always, or never', async () => {
  await using it = await rig({ tls: true })
  const pinned = connect(it.fake, { tls: { fingerprint256: it.fake.fingerprint256 } })
  await present(pinned, WEB1)
  const insecure = connect(it.fake, { tls: { insecure: true } })
  await present(insecure, WEB1)
  const before = it.fake.requests.length
  const { url, username, password } = it.fake
  const unknown = f5Bigip({ url, username, password })
  const wrong = connect(it.fake, { tls: { fingerprint256: 'AB'.repeat(32) } })
  for (const lb of [unknown, wrong]) {
    await expect(lb.observe([WEB1], ctx())).rejects.toMatchObject({ code: 'UNREACHABLE' })
  }
  expect(it.fake.requests).toHaveLength(before)
  for (const lb of [pinned, insecure, unknown, wrong]) await lb.close()
})

test('options are checked when the provider is made', () => {
  const good = { url: 'https://bigip', username: 'u', password: 'p' }
  expect(() => f5Bigip(good)).not.toThrow()
  for (const bad of [
    { ...good, url: 'http://bigip' },
    { ...good, url: [] },
    { ...good, url: 'https://u:p@bigip' },
    { ...good, partition: 'a/b' },
    { ...good, freshness: 'soon' },
    { ...good, tmieout: 3 },
    { ...good, configSync: { group: 'dg1; delete sys connection' } },
  ]) {
    expect(() => f5Bigip(bad as never)).toThrow(/f5Bigip\(\)|url/)
  }
})
