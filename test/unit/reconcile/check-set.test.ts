/** Sets that do not mean what their caller meant. */
import { describe, expect, it } from 'vitest'
import { bench, desired } from './set-up.js'

const b = (address: string) => ({ pool: 'web', member: 'b', address, port: 80, state: 'serve' })
const a = { pool: 'web', member: 'a', state: 'serve' }

describe('a set', () => {
  it.each<[unknown[], string]>([
    [
      [a, a, b('localhost')],
      'reconcile().set(): desired[2].address is "localhost", expected an IP address such as \'10.0.0.7\': names are not resolved; without address the name in member decides',
    ],
    [
      [a, b('127.0.0.1:18183')],
      'desired[1].address is "127.0.0.1:18183", expected an IP address without a port: address: \'127.0.0.1\', port: 18183',
    ],
    [[b('[2001:db8::1]:80')], "expected an IP address without a port: address: '2001:db8::1'"],
    [[b('web1.internal:80')], 'names are not resolved'],
    [[b('http://10.0.0.1')], 'desired[0].address is "http://10.0.0.1", expected an IP address'],
    [[b('10.0.0.0/24')], 'expected an IP address'],
    [[b('10.0.0.256')], 'expected an IP address'],
    [[b('010.0.0.1')], 'expected an IP address'],
    [[b(' 10.0.0.1')], 'expected an IP address'],
    [[b('[10.0.0.1]')], 'expected an IP address'],
    [[b('10.0.0.1%')], 'expected an IP address'],
    [[b('/')], 'expected an IP address'],
    [[{ ...b('localhost'), state: 'drain' }], 'expected an IP address'],
    [[{ ...a, wieght: 10 }], "desired[0] has the unknown field 'wieght', did you mean 'weight'?"],
    [[a, { ...a, balancer: 'x' }], "desired[1] has the unknown field 'balancer', expected one of"],
    [
      [a, { ...a, member: 'b' }, { ...a, state: 'drain' }],
      "desired[2] is 'drain' for web/a, which desired[0] wants as 'serve'; name each member once",
    ],
  ])('%# is refused, and the earlier one stays', async (set, words) => {
    const at = bench('a', 'b')
    await using loop = at.start()
    loop.set(desired({ a: 'serve', b: 'serve' }))
    expect(() => loop.set(set as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTIONS',
        message: expect.stringContaining(words) as string,
      }),
    )
    await at.clock.runUntil(loop.settled())
    expect(at.sent()).toEqual([])
  })

  it.each([
    '10.0.0.1',
    '10.0.0.1%1',
    '2001:DB8:0::1',
    '[2001:db8::1]',
    '::ffff:10.0.0.1',
    'fe80::1%eth0',
    '/run/app.sock',
    '@app',
  ])('takes the address %s', async (address) => {
    const at = bench('a')
    await using loop = at.start()
    expect(() => loop.set([b(address)] as never)).not.toThrow()
  })

  it('adds by an IPv6 address without its brackets, which products do not take', async () => {
    const at = bench('a')
    await using loop = at.start()
    loop.set([...desired({ a: 'serve' }), b('[2001:db8::1]') as never])
    await at.clock.runUntil(loop.settled())
    const adds = at.lb.requests.flatMap(({ changes = [] }) => changes)
    expect(adds).toMatchObject([{ kind: 'add', address: '2001:db8::1' }])
  })

  // Two port names of a Service can have one number.
  it('may have several entries of one address: the one that wants most counts', async () => {
    const at = bench('a')
    await using loop = at.start()
    const both = [b('10.0.0.9'), { ...b('10.0.0.9'), state: 'drain' }, a, a]
    loop.set(both as never)
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
  })
})

describe('an entry that comes again in the next set', () => {
  it('is checked again where its caller has changed it in place', async () => {
    const at = bench('a')
    await using loop = at.start()
    const one = { ...b('10.0.0.1') }
    loop.set([one] as never)
    one.address = 'localhost'
    expect(() => loop.set([one] as never)).toThrow('desired[0].address is "localhost"')
  })

  it('is told by its place in the newest set, frozen or not', async () => {
    const at = bench('a')
    await using loop = at.start()
    const frozen = Object.freeze(b('10.0.0.1'))
    loop.set([frozen, frozen] as never)
    expect(() => loop.set([frozen, b('10.0.0.256'), frozen] as never)).toThrow('desired[1].address')
    expect(() => loop.set([frozen, frozen, { ...a, wieght: 1 }] as never)).toThrow('desired[2] has')
  })
})
