import fc from 'fast-check'
import { addressTypeOf, canonicalAddress, formatAddress } from 'drainable/endpoints'
import { describe, expect, test } from 'vitest'

describe('canonicalAddress', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['[2001:db8::0001]', '2001:db8::1'],
    ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1'],
    ['2001:0:0:1::', '2001:0:0:1::'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:0a00:0001', '10.0.0.1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
    ['10.0.0.1%1', '10.0.0.1%1'],
    ['2001:DB8::1%2', '2001:db8::1%2'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['Web.Example.TEST', 'web.example.test'],
    ['/run/App.sock', '/run/App.sock'],
    ['1::2::3', '1::2::3'],
    ['1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8:9'],
    ['::1.2.3.400', '::1.2.3.400'],
    ['12345::1', '12345::1'],
    ['', ''],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
    ['1::0:2', '1::2'],
    ['1:0::2', '1::2'],
    ['1::2:0:0:3:4', '1::2:0:0:3:4'],
    ['1:0:0:2:3::4', '1::2:3:0:0:4'],
    ['2001:db8::', '2001:db8::'],
    ['::1', '::1'],
    ['1:2:3:4:5:6:7:', '1:2:3:4:5:6:7:'],
    [':1:2:3:4:5:6:7', ':1:2:3:4:5:6:7'],
    [':::', ':::'],
    ['01::2', '1::2'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical)
  })

  test('a route domain makes it another address', () => {
    expect(canonicalAddress('10.0.0.1%1')).not.toBe(canonicalAddress('10.0.0.1'))
    expect(canonicalAddress('10.0.0.1%1')).not.toBe(canonicalAddress('10.0.0.1%2'))
  })

  test('all spellings of eight groups are one address, others stay apart', () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
    const groups = fc.array(group, { minLength: 8, maxLength: 8 })
    fc.assert(
      fc.property(groups, groups, fc.boolean(), (one, other, upper) => {
        const full = one.map((n) => n.toString(16).padStart(4, '0')).join(':')
        const short = canonicalAddress(full)
        expect(canonicalAddress(upper ? full.toUpperCase() : `[${full}]`)).toBe(short)
        expect(canonicalAddress(short)).toBe(short)
        expect(short === canonicalAddress(other.map((n) => n.toString(16)).join(':'))).toBe(
          one.join() === other.join(),
        )
      }),
    )
  })

  test('no text makes it throw, and it is stable', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.ipV6(), fc.stringMatching(/^[0-9a-f:.%[\]]*$/)),
        (text) => {
          expect(canonicalAddress(canonicalAddress(text))).toBe(canonicalAddress(text))
        },
      ),
    )
  })
})

test.each([
  ['10.0.0.1', 'IPv4'],
  ['10.0.0.1%3', 'IPv4'],
  ['2001:db8::1', 'IPv6'],
  ['db.example.test', 'FQDN'],
  ['/run/a:b.sock', 'FQDN'],
])('%s is %s', (text, type) => {
  expect(addressTypeOf(text)).toBe(type)
})

test.each([
  ['10.0.0.1', 80, '10.0.0.1:80'],
  ['2001:db8::1', 80, '[2001:db8::1]:80'],
  ['[2001:db8::1]', 80, '[2001:db8::1]:80'],
  ['2001:db8::1', undefined, '2001:db8::1'],
])('%s and %s is %s', (address, port, text) => {
  expect(formatAddress(address, port)).toBe(text)
})
