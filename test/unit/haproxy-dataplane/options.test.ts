import { isDrainableError } from 'drainable'
import { haproxyDataplane, type HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { fakeProvider } from 'drainable/testing'
import { expect, test } from 'vitest'

const GOOD: HaproxyDataplaneOptions = {
  url: 'http://127.0.0.1:5555',
  username: 'admin',
  password: 'swordfish',
}

const RUNTIME = fakeProvider({ pools: { web: ['web1'] } })

function complaint(options: object): string {
  try {
    haproxyDataplane({ ...GOOD, ...options })
  } catch (error) {
    if (isDrainableError(error, 'INVALID_OPTIONS')) return error.message
    throw error
  }
  return ''
}

test.each<[object, string]>([
  [{ url: 'lb1' }, 'http or https URL'],
  [{ url: 'https://admin:swordfish@lb1:5555' }, 'credentials do not belong in the URL'],
  [{ url: 'http://lb1:5555' }, 'use https or set allowPlaintext: true'],
  [{ username: '' }, 'expected a user name'],
  [{ password: 7 }, 'password'],
  [{ oldWorkers: 'never' }, "expected 'wait', 'accept' or { within: '30s' }"],
  [{ oldWorkers: 'hard-stop-after' }, "expected 'wait', 'accept' or { within: '30s' }"],
  [{ oldWorkers: { within: 'soon' } }, 'oldWorkers'],
  [{ oldWorkers: { within: 30 } }, "did you mean '30s'"],
  [{ password: '' }, 'password is empty, expected a string or a function'],
  [{ membership: 'file' }, 'membership'],
  [{ runtime: '/run/haproxy.sock' }, 'expected a provider of the same HAProxy'],
  [{ runtime: { observe: () => 1 } }, 'expected a provider of the same HAProxy'],
  [{ runtime: RUNTIME, oldWorkers: 'accept' }, 'expected one of oldWorkers and runtime'],
  [{ timout: '5s' }, "unknown option 'timout'"],
  [{ callTimeout: 1 }, 'callTimeout'],
  [{ dispatcher: {} }, 'dispatcher of undici'],
  [{ socketPath: '~/dataplane.sock' }, "socketPath: '~' means nothing outside of a shell"],
  [{ tls: { cert: 'x' } }, 'cert and key go together'],
])('%o is refused at once: %s', (options, words) => {
  const message = complaint(options)
  expect(message).toContain(words)
  expect(message).not.toContain('swordfish')
})

test.each<object>([
  {},
  { url: 'http://lb1:5555', allowPlaintext: true },
  { url: 'https://lb1:5555/proxy' },
  { oldWorkers: 'accept' },
  { oldWorkers: { within: '30m' } },
  { durable: true, membership: 'configuration', maintCuts: false },
  { password: () => 'x' },
  { runtime: RUNTIME },
  { runtime: RUNTIME, oldWorkers: undefined },
  { socketPath: '/run/dataplane.sock', url: 'http://dataplane' },
])('%o is accepted', (options) => {
  expect(complaint(options)).toBe('')
})

test('two providers on one API are the same balancer for any user', () => {
  const other = haproxyDataplane({ ...GOOD, username: 'other' })
  const one = haproxyDataplane(GOOD)
  expect(other.instance).toBe(one.instance)
  expect(one.instance).toBe('http://127.0.0.1:5555')
  expect(one.name).toBe('haproxy-dataplane')
})
