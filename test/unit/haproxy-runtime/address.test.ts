import { describe, expect, it } from 'vitest'
import { parseAddress } from '../../../src/adapters/haproxy-runtime/codec/address.js'

const abstract = '\0hap'.padEnd(108, '\0')

describe('an address as HAProxy spells it', () => {
  it.each([
    ['/run/a.sock', { path: '/run/a.sock' }, 'unix:/run/a.sock'],
    ['unix@/run/a.sock', { path: '/run/a.sock' }, 'unix:/run/a.sock'],
    ['./a.sock', { path: './a.sock' }, 'unix:./a.sock'],
    ['abns@hap', { path: abstract }, 'abns:hap'],
    ['\0hap', { path: abstract }, 'abns:hap'],
    ['abnsz@hap', { path: '\0hap' }, 'abnsz:hap'],
    ['10.0.0.2:9999', { host: '10.0.0.2', port: 9999 }, 'tcp:10.0.0.2:9999'],
    ['ipv4@10.0.0.2:9999', { host: '10.0.0.2', port: 9999 }, 'tcp:10.0.0.2:9999'],
    ['tcp@lb.example:9999', { host: 'lb.example', port: 9999 }, 'tcp:lb.example:9999'],
    ['[::1]:9999', { host: '::1', port: 9999 }, 'tcp:[::1]:9999'],
    ['ipv6@[2001:db8::1]:9999', { host: '2001:db8::1', port: 9999 }, 'tcp:[2001:db8::1]:9999'],
    ['ipv6@::1:9999', { host: '::1', port: 9999 }, 'tcp:[::1]:9999'],
  ])('%j is read', (text, to, label) => {
    expect(parseAddress(text)).toMatchObject({ to, label })
  })

  it.each([
    ['admin.sock', /\.\/admin\.sock/],
    ['localhost', /a host with its port/],
    ['::1:9999', /\[::1\]:9999/],
    ['*:9999', /no host/],
    [':9999', /no host/],
    ['lb:0', /expected/],
    ['lb:99999', /expected/],
    ['fd@3', /'fd@' is nothing to connect to/],
    ['unix@', /expected/],
    ['~/haproxy.sock', /'~' means nothing outside of a shell; write join\(homedir\(\), \.\.\.\)/],
    ['unix@~haproxy/run/admin.sock', /'~' means nothing outside of a shell/],
    ['a\nb', /expected/],
    ['', /expected/],
  ])('%j is asked about', (text, words) => {
    expect(parseAddress(text)).toMatch(words)
  })
})
