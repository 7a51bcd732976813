import { describe, expect, test } from 'vitest'
import { parseBalancerUrl } from '../../../src/cli/url.js'

describe("a balancer's URL", () => {
  test.each([
    ['haproxy:/run/admin.sock', { scheme: 'haproxy', at: '/run/admin.sock', options: {} }],
    ['haproxy:///run/admin.sock', { scheme: 'haproxy', at: '/run/admin.sock', options: {} }],
    ['haproxy://10.0.0.1:9999', { scheme: 'haproxy', at: '10.0.0.1:9999', options: {} }],
    ['haproxy://[::1]:9999', { scheme: 'haproxy', at: '[::1]:9999', options: {} }],
    [
      'haproxy:/a%20b.sock?master=/m.sock',
      { scheme: 'haproxy', at: '/a b.sock', options: { master: '/m.sock' } },
    ],
    [
      'dataplane+https://ops@lb1:5555/base',
      { scheme: 'dataplane', at: 'https://lb1:5555/base', username: 'ops', options: {} },
    ],
    [
      'bigip+https://b1?peer=https://b2&tls.ca=/ca.pem&tls.insecure=true&minInterval=20',
      {
        scheme: 'bigip',
        at: 'https://b1',
        options: {
          peer: 'https://b2',
          tls: { ca: '/ca.pem', insecure: true },
          minInterval: 20,
        },
      },
    ],
    [
      'envoy+file:/eds/web.json?admin=http://a:1&admin=http://b:1',
      { scheme: 'envoy', at: '/eds/web.json', options: { admin: ['http://a:1', 'http://b:1'] } },
    ],
  ])('%s is read', (text, expected) => {
    expect(parseBalancerUrl(text)).toEqual(expected)
  })

  test.each([
    ['haprox:/run/a.sock', "did you mean 'haproxy'?"],
    ['/run/a.sock', 'it begins with no product'],
    ['bigip:/x', 'it names no transport'],
    ['bigip+ftp://x', "it names '+ftp'"],
    ['haproxy://host', "'host' has no port"],
    ['haproxy:admin.sock', 'its path is not absolute'],
    ['haproxy:/run/100%.sock', "a '%' in it stands for no character"],
    ['envoy+file://host/a.json', "'host' is a host"],
  ])('%s is refused with what was expected', (text, words) => {
    expect(() => parseBalancerUrl(text)).toThrow(words)
  })

  test.each(['bigip+https://u:hunter2@b1', 'bigip+https://b1?password=hunter2&x=1'])(
    'with a secret is refused, and the secret not repeated: %s',
    (text) => {
      expect(() => parseBalancerUrl(text)).toThrow(/DRAINABLE_PASSWORD/)
      expect(() => parseBalancerUrl(text)).not.toThrow(/hunter2/)
    },
  )
})
