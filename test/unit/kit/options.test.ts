import { Agent } from 'undici'
import { afterAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { loginOptions, refusePlaintext, urlsOption } from '../../../src/kit/options.js'
import { durationOption } from '../../../src/provider/option-schemas.js'
import { parseOptions } from '../../../src/provider/options.js'

const schema = z
  .strictObject({
    ...loginOptions,
    url: urlsOption('https://lb.example'),
    pause: z._default(durationOption({ min: 50, max: 600_000 }), 1_000),
    patience: z
      .union(
        [z.literal('wait'), z.strictObject({ within: durationOption() })],
        "expected 'wait' or { within: '30s' }",
      )
      .default('wait'),
    mode: z.enum(['quick', 'careful']).exactOptional(),
    tries: z.int().min(1).max(10).exactOptional(),
    pools: z.array(z.string()).min(1).exactOptional(),
    owner: z.string().min(1).exactOptional(),
  })
  .superRefine(refusePlaintext)

const units = (n: number): string[] => Array.from({ length: n }, (_, i) => `https://lb${i}.example`)
const agent = new Agent()
afterAll(() => agent.close())
const login = { url: 'https://lb.example', username: 'u', password: 'p4ssw0rd' }
const parse = (options: object): unknown => parseOptions(schema, { ...login, ...options }, 'lb()')

describe('options of an adapter', () => {
  test.each([
    [{ pause: '20ms' }, 'lb(): pause is 20 ms, expected at least 50 ms'],
    [
      { pause: 20 },
      "lb(): pause is 20, a bare number is milliseconds: did you mean '20s'? Write '20ms'",
    ],
    [{ pause: '11m' }, 'lb(): pause is 11 m, expected at most 10 m'],
    [{ pause: '1 s' }, "lb(): pause is '1 s', expected milliseconds or a text with its unit"],
    [{ pause: null }, 'lb(): pause is null, expected milliseconds'],
    [{ patience: 'soon' }, "lb(): patience: expected 'wait' or { within: '30s' }"],
    [{ patience: { within: 'soon' } }, "lb(): patience.within is 'soon', expected milliseconds"],
    [{ patience: { whithin: 1 } }, "lb(): patience: expected 'wait' or { within: '30s' }"],
    [{ url: [] }, 'lb(): url: expected at least one URL'],
    [{ url: units(9) }, 'lb(): url: expected at most eight URLs'],
    [{ url: ['https://LB:443/', 'https://lb'] }, 'lb(): url: expected each URL once'],
    [{ url: ['lb', ...units(8)] }, 'lb(): url[0]: expected an http or https URL'],
    [{ url: 7 }, 'lb(): url: expected a URL such as https://lb.example, or a list'],
    [{ url: new URL('https://lb') }, 'of its units; found a URL object: give its href'],
    [{ tls: { insecure: false } }, 'lb(): tls.insecure: expected true; leave it out where'],
    [{ url: ['https://a', 'lb'] }, 'lb(): url[1]: expected an http or https URL'],
    [{ url: 'http://10.0.0.1' }, 'lb(): url: credentials would cross the network in the clear'],
    [{ url: ['https://a', 'http://b'] }, 'lb(): url[1]: credentials would cross the network'],
    [{ url: 'https://u:v@lb' }, 'lb(): url: credentials do not belong in the URL'],
    [{ url: 'lb:443' }, "lb(): url: expected http or https, found 'lb': write 'https://lb:443'"],
    [{ url: 'https://lb/x?y=1' }, "lb(): url: expected no query and no fragment, found '?'"],
    [{ url: 'https://lb/#x' }, "lb(): url: expected no query and no fragment, found '#'"],
    [{ password: '' }, 'lb(): password is empty, expected a string or a function'],
    [{ username: '' }, 'lb(): username: expected a user name'],
    [{ password: 7 }, 'lb(): password: expected a string or a function'],
    [{ dispatcher: {} }, 'lb(): dispatcher: expected a dispatcher of undici'],
    [{ psswrd: 'p4ssw0rd' }, "lb(): unknown option 'psswrd', did you mean 'password'?"],
    [{ passwordFile: '/x' }, "lb(): unknown option 'passwordFile', did you mean 'password'?"],
    [{ Pause: 60 }, "lb(): unknown option 'Pause', did you mean 'pause'?"],
    [{ insecure: true }, "lb(): unknown option 'insecure', expected one of 'username', 'password'"],
    [{ tls: { CA: 'x' } }, "lb(): tls: unknown option 'CA', did you mean 'ca'?"],
    [{ mode: 'loud' }, "lb(): mode: expected one of 'quick', 'careful'"],
    [{ tries: 0 }, 'lb(): tries: expected a number from 1'],
    [{ tries: 11 }, 'lb(): tries: expected a number up to 10'],
    [{ pools: [] }, 'lb(): pools: expected at least 1'],
    [{ owner: '' }, 'lb(): owner: expected a text that is not empty'],
  ])('%j: %s', (options, message) => {
    const said = (() => {
      try {
        parse(options)
        return 'nothing'
      } catch (error) {
        return (error as Error).message
      }
    })()
    expect(said).toContain(message)
    expect(said).not.toContain('p4ssw0rd')
  })

  test.each([
    [undefined, 'undefined'],
    ['/run/haproxy.sock', 'string'],
  ])('%j in place of all options is told some of their names', (given, found) => {
    expect(() => parseOptions(schema, given, 'lb()')).toThrow(
      `lb(): the options: expected an object with options such as 'username', 'password', 'tls', 'dispatcher' and 8 more, found ${found}`,
    )
  })

  test('a URL of another scheme is not called unencrypted', () => {
    expect(() => parse({ url: 'ftp://lb' })).toThrow(
      /^lb\(\): url: expected http or https, found 'ftp'$/,
    )
  })

  test('words are the same whatever language zod has in this process', () => {
    z.config(z.locales.de())
    try {
      expect(() => parse({ tries: 'x' })).toThrow('lb(): tries: expected a number, found a text')
    } finally {
      z.config(z.locales.en())
    }
  })

  test('defaults are filled in, and durations become milliseconds', () => {
    expect(parse({ pause: '2s', dispatcher: agent })).toMatchObject({
      pause: 2_000,
      patience: 'wait',
      url: 'https://lb.example',
    })
    expect(parse({ patience: { within: '5m' } })).toMatchObject({
      pause: 1_000,
      patience: { within: 300_000 },
    })
  })

  test.each(['http://127.0.0.1:5555', 'http://localhost', 'http://[::1]:80'])(
    '%s needs no TLS',
    (url) => {
      expect(parse({ url })).toMatchObject({ url })
    },
  )
})
