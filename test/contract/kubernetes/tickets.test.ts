/** Tickets in ConfigMaps, against an API that refuses what the real one refuses. */
import { findOrphans, restore, startDrain, type Ticket } from 'drainable'
import { kubernetesTickets } from 'drainable/kubernetes'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { FakeKube } from '../../support/kube-api/server.js'

const MAPS = '/api/v1/namespaces/edge/configmaps'

function storeOn(kube: FakeKube) {
  return kubernetesTickets(kube.config, { namespace: 'edge' })
}

describe('tickets of Kubernetes', () => {
  it('are found as orphans by another process, and gone once undone', async () => {
    await using kube = await FakeKube.start()
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
    const mine = storeOn(kube)
    const web1 = { pool: 'web', member: 'web1' }
    const run = startDrain(lb, web1, { tickets: mine, id: 'release:42', settle: '0ms' })
    await run.done
    await run.release()
    const ticket = (await mine.get('release:42')) as Ticket
    await mine.set('release:42', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    const theirs = storeOn(kube)
    const [orphan, ...more] = await findOrphans(theirs, lb)
    expect(more).toEqual([])
    expect(orphan).toMatchObject({ ticket: { id: 'release:42' } })
    await restore(lb, orphan!.ticket, { tickets: theirs })
    expect(lb.state(web1)).toBe('ready')
    expect(await theirs.keys()).toEqual([])
  })

  it('keep every key that the API would not take for a name', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    const keys = [
      'a',
      'A',
      'a-b',
      'a_b',
      'a.b',
      'release:42',
      '-',
      '...',
      'x'.repeat(200),
      'X'.repeat(200),
      '@@@',
      'drainable=1',
      'späti',
      'web/web1',
    ]
    for (const [i, key] of keys.entries()) await store.set(key, { i })
    expect([...(await store.keys())].sort()).toEqual([...keys].sort())
    for (const [i, key] of keys.entries()) expect(await storeOn(kube).get(key)).toEqual({ i })
    for (const key of keys) await store.delete(key)
    expect(await store.keys()).toEqual([])
  })

  it('are one labelled object each, that a person can read', async () => {
    await using kube = await FakeKube.start()
    await storeOn(kube).set('release:42', { v: 1 })
    const [asked] = kube.calls('configmaps', 'write')
    expect(asked).toMatchObject({ method: 'POST', path: MAPS })
    kube.put(MAPS, { metadata: { name: 'kube-root-ca.crt' } })
    expect(await storeOn(kube).keys()).toEqual(['release:42'])
  })

  it('that are not there are undefined, and deleted without an error', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    expect(await store.get('a')).toBeUndefined()
    await store.delete('a')
  })

  it('are listed page by page', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    await Promise.all(Array.from({ length: 1_100 }, (_, i) => store.set(`t${i}`, i)))
    expect([...(await store.keys())]).toHaveLength(1_100)
  })

  it('refuse a write over what another process wrote since, once', async () => {
    await using kube = await FakeKube.start()
    const [a, b] = [storeOn(kube), storeOn(kube)]
    await a.set('t', 'a1')
    expect(await b.get('t')).toBe('a1')
    await b.set('t', 'b1')
    await expect(a.set('t', 'a2')).rejects.toMatchObject({ code: 'CONFLICT', retryable: true })
    expect(await b.get('t')).toBe('b1')
    await a.set('t', 'a3')
    expect(await b.get('t')).toBe('a3')
  })

  it('refuse to delete what another process wrote since', async () => {
    await using kube = await FakeKube.start()
    const [a, b] = [storeOn(kube), storeOn(kube)]
    await a.set('t', 'a1')
    await b.get('t')
    await b.set('t', 'b1')
    await expect(a.delete('t')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await b.get('t')).toBe('b1')
  })

  it('say that another process deleted one', async () => {
    await using kube = await FakeKube.start()
    const [a, b] = [storeOn(kube), storeOn(kube)]
    await a.set('t', 'a1')
    await b.delete('t')
    await expect(a.set('t', 'a2')).rejects.toThrow(/was deleted by another process/)
    await a.delete('t')
  })

  it('know their own writing whose answer was lost', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    for (const method of ['POST', 'PUT', 'PUT']) {
      kube.trouble = (asked) => (asked.method === method ? 'lost' : undefined)
      await expect(store.set('t', { method })).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
      kube.trouble = () => undefined
      await store.set('t', { method, again: true })
    }
    kube.trouble = (asked) => (asked.method === 'PUT' ? 'lost' : undefined)
    await expect(store.set('t', 'last')).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    kube.trouble = () => undefined
    await store.delete('t')
    expect(await store.get('t')).toBeUndefined()
  })

  it('know their own writing that the API called too late', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    await store.set('t', 'one')
    kube.trouble = (asked) => (asked.method === 'PUT' ? 'unsure' : undefined)
    await expect(store.set('t', 'two')).rejects.toMatchObject({ code: 'UNREACHABLE' })
    kube.trouble = () => undefined
    await store.set('t', 'three')
    expect(await store.get('t')).toBe('three')
  })

  it('are not overwritten by a writing that arrives late', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    await store.set('t', 'one')
    kube.trouble = (asked) => (asked.method === 'PUT' ? 'late' : undefined)
    const late = store.set('t', 'two')
    const refusal = expect(late).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect.poll(() => kube.calls('configmaps', 'write').length).toBe(2)
    kube.trouble = () => undefined
    const other = storeOn(kube)
    await other.get('t')
    await other.set('t', 'three')
    kube.flush()
    await refusal
    expect(await other.get('t')).toBe('three')
  })

  it('of one key are written one after another', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    await Promise.all(Array.from({ length: 20 }, (_, i) => store.set('t', i)))
    expect(await store.get('t')).toBe(19)
  })

  it('whose writing hangs end at once when the store is closed', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    kube.trouble = () => 'hang'
    const ends = [store.set('t', 1), store.set('t', 2), store.get('u'), store.keys()]
    const refusals = ends.map((one) => expect(one).rejects.toThrow('the store was closed'))
    await expect.poll(() => kube.asked.length).toBe(3)
    await store.close()
    await Promise.all(refusals)
    await expect.poll(() => kube.connections).toBe(0)
    await expect(store.get('t')).rejects.toThrow('the store was closed')
    expect(kube.asked).toHaveLength(3)
  })

  it('wait for one that hangs no longer than for their own answer', async () => {
    await using kube = await FakeKube.start()
    const clock = fakeClock()
    const store = kubernetesTickets(kube.config, { namespace: 'edge', clock })
    kube.trouble = () => 'hang'
    const ends = [1, 2, 3].map((n) => store.set('t', n))
    const refusals = ends.map((one) => expect(one).rejects.toMatchObject({ code: 'CALL_TIMEOUT' }))
    await expect.poll(() => kube.asked.length).toBe(1)
    await clock.advance(10_000)
    await Promise.all(refusals)
    kube.trouble = () => undefined
    await store.set('t', 4)
    expect(await store.get('t')).toBe(4)
    expect(kube.asked).toHaveLength(4) // of the three that were given up, two were never sent
  })

  it('that are too long are refused in the words of the API', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    await expect(store.set('t', 'x'.repeat(1_100_000))).rejects.toMatchObject({
      code: 'REJECTED',
      message: expect.stringContaining('Too long') as string,
    })
    await store.set('t', 'short')
  })

  it('do not take another object for a ticket', async () => {
    await using kube = await FakeKube.start()
    const store = storeOn(kube)
    await store.set('t', 1)
    const name = kube.calls('configmaps', 'write').length === 1 ? nameIn(kube) : ''
    kube.put(MAPS, { metadata: { name } })
    await expect(store.get('t')).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
  })
})

function nameIn(kube: FakeKube): string {
  return kube.names(MAPS)[0] ?? ''
}
