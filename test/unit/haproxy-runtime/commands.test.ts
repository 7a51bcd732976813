import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addServer,
  delServer,
  isName,
  refusal,
  setState,
  showServersState,
  showStat,
  shutdownSessions,
  waitRemovable,
} from '../../../src/adapters/haproxy-runtime/codec/commands.js'

const ref = { pool: 'be_api', member: 's-1.x:2' }

describe('encoders', () => {
  it('write one line', () => {
    expect(setState(ref, 'drain')).toBe('set server be_api/s-1.x:2 state drain')
    expect(showStat('7', 'both', '3')).toBe('show stat 7 6 3')
    expect(showStat('-1', 'servers')).toBe('show stat -1 4 -1')
    expect(showServersState('be_api')).toBe('show servers state be_api')
    expect(waitRemovable(ref, 299.6)).toBe('wait 300ms srv-removable be_api/s-1.x:2')
    expect(
      addServer(ref, { address: '2001:db8::1', port: 80, weight: 5, keywords: 'check inter 1s' }),
    ).toBe('add server be_api/s-1.x:2 [2001:db8::1]:80 weight 5 check inter 1s')
  })

  it.each(['', 'a b', 'a;b', 'a\nb', 'a/b', 'a,b', 'a#b', 'é', '@1', 'a\0'])(
    'never send the name %j',
    (name) => {
      const bad: unknown = expect.objectContaining({ code: 'INVALID_OPTIONS' })
      expect(isName(name)).toBe(false)
      expect(() => setState({ pool: 'web', member: name }, 'drain')).toThrow(bad)
      expect(() => delServer({ pool: name, member: 's1' })).toThrow(bad)
      expect(() => showStat(name, 'both')).toThrow(bad)
      expect(() => showServersState(name)).toThrow(bad)
    },
  )

  it('never let a name carry a second command', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (pool, member) => {
        try {
          const line = shutdownSessions({ pool, member })
          expect(line.split(' ')).toHaveLength(4)
          expect(line).not.toMatch(/[;\n\r]/)
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
        }
      }),
    )
  })

  it.each([
    [{ address: 'app.local', port: 80 }, /not an IP address/],
    [{ address: '10.0.0.1', port: 99_999 }, /not a port/], // HAProxy takes it for another port
    [{ address: '10.0.0.1', port: 80, weight: 300 }, /not a weight/],
    [{ address: '10.0.0.1', port: 80, keywords: 'check;quit' }, /can't follow/],
    [{ address: '10.0.0.1', port: 80, keywords: ['check'] }, /native.keywords: \["check"\] can't/],
  ] as const)('refuses to add %j', (added, message) => {
    expect(() => addServer(ref, added)).toThrow(message)
  })
})

describe('refusals of HAProxy', () => {
  it.each([
    ['No such server.', 'NOT_FOUND', false],
    ['No such backend.', 'NOT_FOUND', false],
    ['Permission denied', 'FORBIDDEN', false],
    ['Proxy is disabled.', 'CONFLICT', true],
    ['Server still has connections attached to it, cannot remove it.', 'CONFLICT', true],
    [
      'This server cannot be removed at runtime due to other configuration elements pointing to it.',
      'REJECTED',
      false,
    ],
    ['Only servers in maintenance mode can be deleted.', 'CONFLICT', false],
    ['Backend must use a dynamic load balancing to support dynamic servers.', 'UNSUPPORTED', false],
    ['Already exists a server with the same name in backend.', 'CONFLICT', false],
    ['Unknown command: wait', 'UNSUPPORTED', false],
    ['Something else.', 'REJECTED', false],
  ] as const)('%s', (words, code, retryable) => {
    const error = refusal(ref, 'del server be_api/s-1.x:2', words)
    expect(error).toMatchObject({ code, retryable, ref, provider: 'haproxy-runtime' })
    expect(error.message).toContain(`'${words.slice(0, 40)}`)
    expect(error.message).toMatch(/^be_api\/s-1\.x:2: /)
  })

  it('of a disabled proxy names a listen section that was shut down', () => {
    const error = refusal(ref, 'set server be_api/s-1.x:2', 'Proxy is disabled.')
    expect(error.message).toContain("'shutdown frontend' stopped it")
  })
})
