import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { describe, expect, test } from 'vitest'

const LOGIN = { username: 'admin', password: 'p4ssw0rd' }

const products = [
  ['f5Bigip', (url: string) => f5Bigip({ ...LOGIN, url })],
  ['citrixAdc', (url: string) => citrixAdc({ ...LOGIN, url })],
  ['haproxyDataplane', (url: string) => haproxyDataplane({ ...LOGIN, url })],
] as const

// Two objects of one instance share the floor, and a ticket of one resumes with the other.
describe.each(products)('the instance of %s', (_, provider) => {
  test('tells two balancers behind one gateway apart', () => {
    const [one, other] = ['one', 'other'].map(
      (path) => provider(`https://gateway/${path}`).instance,
    )
    expect(one).toBe('https://gateway/one')
    expect(other).toBe('https://gateway/other')
  })

  test('is the same for all spellings of a URL', () => {
    const spellings = ['https://Gateway:443/lb/', 'https://gateway/lb']
    expect(new Set(spellings.map((url) => provider(url).instance)).size).toBe(1)
  })
})

describe.each([
  ['f5Bigip', (url: string[]) => f5Bigip({ ...LOGIN, url })],
  ['citrixAdc', (url: string[]) => citrixAdc({ ...LOGIN, url })],
] as const)('the instance of a pair of %s', (_, provider) => {
  test('is the same in whichever order its units are given', () => {
    const pair = ['https://b', 'https://a']
    expect(provider(pair).instance).toBe(provider(pair.toReversed()).instance)
  })
})
