import { inspect } from 'node:util'
import { HttpResponse } from 'msw'
import { describe, expect, test } from 'vitest'
import {
  network,
  WEB1,
  OK,
  seen,
  appliance,
  ctx,
  provider,
  look,
  present,
  useHandWritten,
} from './hand-written.js'

useHandWritten()

describe('logging in', () => {
  test('sends the token back as Set-Cookie had it, and logs out', async () => {
    network.use(appliance())
    await look()
    expect(seen[0]).toMatchObject({
      line: 'POST config/login',
      cookie: null,
      body: '{"login":{"username":"u","password":"p","timeout":900}}',
    })
    expect(new Set(seen.slice(1).map(({ cookie }) => cookie))).toEqual(
      new Set(['NITRO_AUTH_TOKEN=%23%23A%2BB%2FC']),
    )
    expect(seen.at(-1)).toMatchObject({ line: 'POST config/logout', body: '{"logout":{}}' })
  })

  test('prints nothing of an answer that is no JSON', async () => {
    const login = (): Response =>
      HttpResponse.text('{"sessionid":"##S3CRET", errorcode', { status: 201 })
    network.use(appliance({ login }))
    const error: unknown = await look().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'MALFORMED_REPLY' })
    expect(inspect(error, { depth: 9 })).not.toContain('S3CRET')
  })

  test('takes the token from the body when there is no cookie', async () => {
    network.use(
      appliance({ login: () => HttpResponse.json({ ...OK, sessionid: '##X/Y' }, { status: 201 }) }),
    )
    await look()
    expect(seen.at(-1)?.cookie).toBe('NITRO_AUTH_TOKEN=%23%23X%2FY')
  })

  test('asks for no session length when the appliance allows less', async () => {
    network.use(
      appliance({
        login: ({ body }) =>
          body.includes('timeout')
            ? HttpResponse.json({ errorcode: 1219, message: 'Invalid Timeout' }, { status: 599 })
            : HttpResponse.json({ ...OK, sessionid: '##X' }, { status: 201 }),
      }),
    )
    await expect(present()).resolves.toMatchObject({ own: 'ready' })
  })

  test.each([
    [354, 'UNAUTHENTICATED'],
    [1046, 'UNAUTHENTICATED'],
    [2138, 'UNAUTHENTICATED'],
  ])('errorcode %i ends it with %s and never shows the password', async (errorcode, code) => {
    const message = 'Invalid password "s3cret/#"'
    network.use(
      appliance({ login: () => HttpResponse.json({ errorcode, message }, { status: 401 }) }),
    )
    await using adc = provider({ password: 's3cret/#' })
    const failure: unknown = await adc.observe([WEB1], ctx).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code })
    expect(String(failure)).not.toContain('s3cret')
    expect(seen).toHaveLength(1)
  })

  test('asks once more for a rotated password', async () => {
    const passwords = ['old', 'new']
    network.use(
      appliance({
        login: ({ body }) =>
          body.includes('"new"')
            ? HttpResponse.json({ ...OK, sessionid: '##X' }, { status: 201 })
            : HttpResponse.json({ errorcode: 354, message: 'no' }, { status: 401 }),
      }),
    )
    await using adc = provider({ password: () => passwords.shift() ?? 'new' })
    expect((await adc.observe([WEB1], ctx)).readings).toHaveLength(1)
  })

  test('headers are sent without a cookie, and never where they are off', async () => {
    network.use(appliance())
    await using adc = provider({ auth: 'headers' })
    await adc.observe([WEB1], ctx)
    expect(new Set(seen.map(({ cookie, user }) => `${String(cookie)} ${String(user)}`))).toEqual(
      new Set(['null u']),
    )
    await adc.close()
    expect(seen.some(({ line }) => /log(in|out)/.test(line))).toBe(false)
    network.use(
      appliance({
        clusterinstance: () =>
          HttpResponse.json({ errorcode: 1244, message: 'off' }, { status: 401 }),
      }),
    )
    await using off = provider({ auth: 'headers' })
    await expect(off.observe([WEB1], ctx)).rejects.toThrow(/use auth: 'session'/)
  })

  test('is not repeated for ever when sessions end right after it', async () => {
    network.use(
      appliance({
        clusterinstance: () =>
          HttpResponse.json({ errorcode: 444, message: 'expired' }, { status: 401 }),
      }),
    )
    await expect(look()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(seen.filter(({ line }) => line.endsWith('/login'))).toHaveLength(2)
  })
})
