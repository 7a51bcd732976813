import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, expect, it } from 'vitest'
import { readOptions } from '../../../src/adapters/haproxy-runtime/options.js'

describe('options', () => {
  it('have defaults', () => {
    expect(readOptions({ socket: '/run/haproxy/admin.sock' })).toEqual({
      socket: {
        to: { path: '/run/haproxy/admin.sock' },
        label: 'unix:/run/haproxy/admin.sock',
        local: true,
      },
      oldWorkers: 'wait',
      maintCuts: false,
      keepFollowers: 1,
      connectTimeout: 2_000,
      replyTimeout: 5_000,
      maxConnections: 4,
    })
  })

  it('take durations with units', () => {
    const settings = readOptions({
      socket: { host: '10.0.0.2', port: 9999 },
      oldWorkers: { within: '30s' },
      connectTimeout: '500ms',
      replyTimeout: 2_500,
    })
    expect(settings).toMatchObject({
      oldWorkers: { within: 30_000 },
      connectTimeout: 500,
      replyTimeout: 2_500,
    })
  })

  it.each([
    [{}, /socket/],
    [{ socket: '' }, /socket/],
    [{ socket: { host: 'lb' } }, /socket/],
    [{ socket: { host: 'lb', port: 0 } }, /socket/],
    [{ socket: '/s', sokcet: '/t' }, /unknown option 'sokcet'/],
    [{ socket: '/s', oldWorkers: 'ignore' }, /oldWorkers.*'wait', 'accept'/],
    [{ socket: '/s', oldWorkers: { within: 'soon' } }, /oldWorkers.within is 'soon'/],
    [{ socket: '/s', oldWorkers: { within: 30 } }, /oldWorkers.within is 30, .* mean '30s'/],
    [{ socket: 'http://lb:9999' }, /'http:\/\/' is not how HAProxy writes .*write lb:9999/],
    [{ socket: 'tcp://lb:9999' }, /write lb:9999/],
    [{ socket: 'unix:/run/a.sock' }, /write \/run\/a.sock/],
    [{ socket: '/s', replyTimeout: '1 s' }, /replyTimeout is '1 s'/],
    [{ socket: '/s', connectTimeout: 42 }, /connectTimeout is 42, .* mean '42s'\? Write '42ms'/],
    [{ socket: '/s', connectTimeout: 0 }, /connectTimeout .* at least 10 ms/],
    [{ socket: '/s', maxConnections: 0 }, /maxConnections/],
    [{ socket: '/s', master: 7 }, /master/],
    [{ socket: '/s', keepFollowers: -1 }, /keepFollowers/],
  ])('%j is refused at once', (options, message) => {
    const open = (): unknown => haproxyRuntime(options as never)
    expect(open).toThrow(message)
    expect(open).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }))
  })

  it('name the instance without secrets', () => {
    expect(haproxyRuntime({ socket: '/run/a.sock' }).instance).toBe('unix:/run/a.sock')
    expect(haproxyRuntime({ socket: { host: 'lb', port: 1 } }).instance).toBe('tcp:lb:1')
  })
})
