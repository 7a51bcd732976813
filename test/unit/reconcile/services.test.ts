import { describe, expect, it } from 'vitest'
import { mapEndpoints, mergeSlices, toDesired } from 'drainable/endpoints'
import type { DesiredMember } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { reconcile } from 'drainable'
import { bench, desired, web } from './set-up.js'

describe('a Service that is emptied and filled again', () => {
  it('is emptied and served again, and an unrelated one serves all along', async () => {
    const at = bench('a', 'b', 'vm')
    const owns = ({ ref }: { ref: { member: string } }) => ref.member !== 'vm'
    await using loop = await at.settled(desired({ a: 'serve', b: 'serve' }), {
      allowEmpty: true,
      owns,
    })
    loop.set([])
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b', 'vm')).toEqual(['gone', 'gone', 'ready'])
    const back = ['c', 'd'].map((member, i): DesiredMember => ({
      pool: 'web',
      member,
      address: `10.0.0.${i + 1}`,
      port: 80,
      state: 'serve',
    }))
    loop.set(back)
    await at.clock.runUntil(loop.settled())
    expect(at.states('c', 'd', 'vm')).toEqual(['ready', 'ready', 'ready'])
    expect(
      at.lb.requests.flatMap(({ changes = [] }) => changes).map(({ ref }) => ref),
    ).not.toContainEqual(web('vm'))
  })

  it('serves without a gap if it is filled before its drains have ended', async () => {
    const at = bench('a', 'b')
    const ends = ['a', 'b'].map((name) => at.lb.occupy(web(name)))
    await using loop = at.start({ allowEmpty: true })
    loop.set([])
    await at.clock.advance(3_000)
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await at.clock.runUntil(loop.settled())
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
    for (const end of ends) end()
    await at.clock.advance(10_000)
    expect(at.states('a', 'b')).toEqual(['ready', 'ready'])
  })
})

interface Pod {
  readonly uid: string
  readonly leaving: boolean
  readonly address?: string
}

describe('an address taken by another pod while its old one drains', () => {
  const slice = (pods: readonly Pod[]) => ({
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: pods.map(({ uid, leaving, address = '192.0.2.1' }) => ({
      addresses: [address],
      conditions: { ready: !leaving, serving: true, terminating: leaving },
      targetRef: { kind: 'Pod', namespace: 'shop', name: `pod-${uid}`, uid },
    })),
  })
  const of = (pods: readonly Pod[]): readonly DesiredMember[] =>
    toDesired(mapEndpoints(mergeSlices([slice(pods)], { port: 'http' })), { pool: 'web' })
  const old = { uid: 'old', leaving: true }
  const young = { uid: 'new', leaving: false }
  const other = { uid: 'other', leaving: false, address: '192.0.2.2' }

  it('serves for the new pod, even while the old one is listed', async () => {
    const clock = fakeClock()
    const lb = fakeProvider({ pools: { web: ['a', 'b'] }, clock })
    const end = lb.occupy(web('a'))
    await using loop = reconcile(lb, { pools: ['web'], owns: () => true, clock })
    loop.set(of([old, other]))
    await clock.advance(3_000)
    expect(lb.state(web('a'))).toBe('drain')
    loop.set(of([old, young, other]))
    await clock.runUntil(loop.settled())
    expect(lb.state(web('a'))).toBe('ready')
    loop.set(of([young, other]))
    end()
    await clock.runUntil(loop.settled())
    await clock.advance(60_000)
    expect(lb.state(web('a'))).toBe('ready')
    expect(
      lb.requests.flatMap(({ changes = [] }) => changes).map(({ kind }) => kind),
    ).not.toContain('remove')
  })
})
