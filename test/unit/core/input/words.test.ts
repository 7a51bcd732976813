import { reconcile, stepDrain, watch } from 'drainable'
import { mapEndpoints, mergeSlices } from 'drainable/endpoints'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { thrown } from '../set-up.js'

/** A function, called with what its types refuse. */
type Loose = (...args: readonly unknown[]) => unknown

const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
const said = async (call: () => unknown): Promise<string> =>
  ((await thrown(new Promise((resolve) => resolve(call())))) as Error).message

describe('an argument that is not there', () => {
  it.each<[string, () => unknown, string]>([
    ['target of watch()', () => (watch as Loose)(lb), 'watch(): target: is missing; expected'],
    [
      'target of stepDrain()',
      () => (stepDrain as Loose)(lb, { policy: { timeout: '1m' } }),
      'stepDrain(): from: target is missing: write { target: { pool, member }, policy }',
    ],
    [
      'provider of watch()',
      () => (watch as Loose)(),
      'watch(): provider: is missing; pass what a factory such as haproxyRuntime() gave',
    ],
    [
      'pools of reconcile()',
      () => (reconcile as Loose)(lb, {}),
      'reconcile(): pools is missing, expected a list',
    ],
  ])('%s is called missing', async (_, call, words) => {
    expect(await said(call)).toContain(words)
  })
})

it('reconcile() of options alone says that the provider comes first', async () => {
  const call = (): unknown => (reconcile as Loose)({ pools: ['web'] })
  expect(await said(call)).toContain('the provider comes first: reconcile(lb, { ... })')
})

it('a URL as a socket is told its path', async () => {
  const socket = new URL('unix:/run/haproxy/admin.sock')
  const words = "is a URL: write its path, '/run/haproxy/admin.sock'"
  expect(await said(() => haproxyRuntime({ socket } as never))).toContain(words)
})

const older = { kind: 'Endpoints', metadata: { name: 'web' }, subsets: [] }

it.each<[string, () => unknown, string]>([
  ['mapEndpoints()', () => (mapEndpoints as Loose)(older), 'endpoints'],
  ['mergeSlices()', () => (mergeSlices as Loose)(older), 'slices'],
  ['mergeSlices() with a list', () => (mergeSlices as Loose)([older]), 'slices[0] (web)'],
])('%s tells an Endpoints object from EndpointSlices', async (_, call, place) => {
  const words = 'is an Endpoints object, which has no conditions: give those of its EndpointSlices'
  expect(await said(call)).toContain(`: ${place} ${words}`)
})

it.each([
  [{ kind: 'Endpoints', subsets: [] }, 'endpoints[0] is an Endpoints object'],
  [
    { kind: 'EndpointSlice', endpoints: [] },
    'endpoints[0] is an EndpointSlice: give what mergeSlices()',
  ],
])('a whole %o in the list of endpoints is named', async (object, words) => {
  expect(await said(() => (mapEndpoints as Loose)([object]))).toContain(words)
})
