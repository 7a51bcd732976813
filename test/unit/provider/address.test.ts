import { isIPv6, SocketAddress } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatSocket } from '../../../src/provider/address.js'

const group = fc.integer({ min: 0, max: 0xffff })
const groups = fc.array(group, { minLength: 8, maxLength: 8 })
/** Addresses with many zeros, so that every place of `::` comes up, and IPv4 inside IPv6. */
const sparse = fc.oneof(
  groups,
  groups.map((all) => all.map((each) => (each % 3 === 0 ? each : 0))),
  fc.tuple(group, group).map(([high, low]) => [0, 0, 0, 0, 0, 0xffff, high, low]),
)

const full = (all: number[]): string =>
  all.map((each) => each.toString(16).padStart(4, '0')).join(':')
const short = (all: number[]): string => all.map((each) => each.toString(16)).join(':')
const dotted = (all: number[]): string => {
  const [high = 0, low = 0] = all.slice(6)
  return `${short(all.slice(0, 6))}:${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

test('every spelling of an address and port is the same text', () => {
  fc.assert(
    fc.property(sparse, fc.integer({ min: 1, max: 65_535 }), (all, port) => {
      const system = new SocketAddress({ family: 'ipv6', address: short(all) }).address
      const spellings = [short(all), full(all), full(all).toUpperCase(), dotted(all), system]
      const [one, ...others] = spellings.map((each) => formatSocket(each, port))
      expect(spellings.every((each) => isIPv6(each))).toBe(true)
      for (const other of others) expect(other).toBe(one)
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['10.0.0.1', '10.0.0.1:80'],
  ['::ffff:10.0.0.1', '10.0.0.1:80'],
  ['2001:DB8:0:0::1', '[2001:db8::1]:80'],
  ['[2001:db8::1]', '[2001:db8::1]:80'],
  ['Web1.Example', 'web1.example:80'],
])('%s', (address, socket) => expect(formatSocket(address, 80)).toBe(socket))
