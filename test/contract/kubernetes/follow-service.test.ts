/** What a follower gives to a reconciler, against an API that is in trouble. */
import { followService, spotTaints } from 'drainable/kubernetes'
import { fakeClock } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { node, NODES, service, SERVICES, slice, SLICES } from '../../support/kube-api/objects.js'
import { configFor, FakeKube, startFrozen } from '../../support/kube-api/server.js'
import { follow, Taker, WEB } from '../../support/kube-api/taker.js'

const FORBIDDEN = {
  status: 403,
  text: JSON.stringify({
    kind: 'Status',
    message: 'nodes is forbidden: User "system:serviceaccount:edge:c" cannot list resource "nodes"',
    code: 403,
  }),
}

/** A cluster of one Service with two ready pods on one Node. */
async function cluster(): Promise<FakeKube> {
  const kube = await FakeKube.start()
  kube.put(SERVICES, service())
  kube.put(NODES, node('n0'))
  kube.put(SLICES, slice({ '10.0.0.1': 'TTF', '10.0.0.2': 'TTF' }))
  return kube
}

const BOTH = ['10.0.0.1 serve', '10.0.0.2 serve']

describe('a follower', () => {
  it('gives whole sets, from a list and from every event after it', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    expect(run.follower.synced).toBe(true)
    expect(run.taker.sets[0]?.[0]).toMatchObject({
      pool: 'web',
      member: 'pod-p-10-0-0-1',
      port: 8080,
    })
    kube.put(SLICES, slice({ '10.0.0.1': 'FTT', '10.0.0.2': 'TTF' }))
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 serve']))
    kube.remove(SLICES, 'web-x1')
    await eventually(() => expect(run.taker.newest).toEqual([]))
    expect(run.told).toEqual([])
  })

  it('takes in a list only when its last page is there', async () => {
    await using kube = await cluster()
    for (let i = 0; i < 1_200; i += 1)
      kube.put(SLICES, slice({ [`10.1.${i >> 8}.${i & 255}`]: 'TTF' }, { name: `web-${i}` }))
    let pages = 0
    kube.trouble = ({ path, query }) => {
      if (path !== SLICES || query.has('watch')) return undefined
      pages += 1
      return pages === 2 ? { status: 500, text: 'no' } : undefined
    }
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.sets).not.toEqual([]))
    expect(run.taker.sets[0]).toHaveLength(1_202)
  })

  it('gives nothing before Nodes are whole, and then everything', async () => {
    await using kube = await cluster()
    kube.trouble = ({ path }) => (path === NODES ? 'hang' : undefined)
    const clock = fakeClock()
    await using run = follow(kube.config, { clock })
    await eventually(() => expect(kube.calls('endpointslices', 'watch')).toHaveLength(1))
    await clock.advance(29_000)
    expect(run.taker.sets).toEqual([])
    expect(run.follower.synced).toBe(false)
    await eventually(async () => {
      await clock.advance(1_000)
      expect(run.taker.newest).toEqual(BOTH)
    })
    expect(run.told).toContain(
      'CALL_TIMEOUT list Nodes: no answer from the Kubernetes API within 30 s',
    )
  })

  it('ends a list that hangs after 30 s, and has another one soon', async () => {
    await using kube = await cluster()
    kube.trouble = () => 'hang'
    const clock = fakeClock()
    await using run = follow(kube.config, { clock })
    await eventually(() => expect(kube.calls('endpointslices', 'list')).toHaveLength(1))
    kube.trouble = () => undefined
    await clock.advance(30_000)
    await eventually(async () => {
      await clock.advance(100)
      expect(run.taker.newest).toEqual(BOTH)
    })
    expect(clock.now()).toBeLessThan(32_000)
  })

  it('ends at once while lists hang, and leaves no connection', async () => {
    await using kube = await cluster()
    kube.trouble = () => 'hang'
    const stop = new AbortController()
    const run = follow(kube.config, { signal: stop.signal })
    await eventually(() => expect(kube.asked).toHaveLength(3))
    stop.abort()
    await run.follower.close()
    await eventually(() => expect(kube.connections).toBe(0))
    expect(run.told).toEqual([])
    expect(run.follower.synced).toBe(false)
  })

  it('gives a connection up after 5 s if nobody speaks TLS', async () => {
    await using frozen = await startFrozen()
    const clock = fakeClock()
    await using run = follow(
      configFor(frozen.url, () => 'x'),
      { clock },
    )
    await eventually(async () => {
      await clock.advance(500)
      expect(run.told).toContain(
        'UNREACHABLE list EndpointSlices in shop: no connection within 5 s',
      )
    })
    expect(clock.now()).toBeLessThan(10_000)
  })

  it('ends a watch that was silent for 30 s, and goes on from there', async () => {
    await using kube = await cluster()
    const clock = fakeClock()
    await using run = follow(kube.config, { clock })
    await eventually(() => expect(kube.watches).toBe(3))
    await eventually(async () => {
      await clock.advance(1)
      expect(run.taker.newest).toEqual(BOTH)
    })
    kube.forgetWatches()
    kube.put(SLICES, slice({ '10.0.0.2': 'TTF' }))
    await eventually(async () => {
      await clock.advance(1_000)
      expect(run.taker.newest).toEqual(['10.0.0.2 serve'])
    })
    expect(kube.calls('endpointslices', 'list')).toHaveLength(1)
  })

  it.each(['inside a watch', 'as a reply'])('lists anew after 410 %s', async (where) => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    await eventually(() => expect(kube.watches).toBe(3))
    const up = await kube.down()
    kube.put(SLICES, slice({ '10.0.0.4': 'TTF' }, { name: 'web-x2' }))
    kube.remove(SLICES, 'web-x1')
    kube.forget()
    if (where === 'as a reply')
      kube.trouble = ({ query }) =>
        query.has('watch') && kube.calls('endpointslices', 'list').length < 2
          ? { status: 410, text: '{}' }
          : undefined
    await up()
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.4 serve']))
    await eventually(() => expect(run.follower.synced).toBe(true))
  })

  it('goes on from the bookmark of a quiet watch, without a new list', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(kube.watches).toBe(3))
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    for (let i = 0; i < 50; i += 1) kube.put('/api/v1/namespaces/else/pods', node(`p${i}`))
    kube.endWatches()
    kube.forget()
    await eventually(() => expect(kube.watches).toBe(3))
    kube.put(SLICES, slice({ '10.0.0.5': 'TTF' }))
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.5 serve']))
    expect(kube.calls('endpointslices', 'list')).toHaveLength(1)
    expect(run.told).toEqual([])
  })

  it('asks for a watch that ends at once at most once a second', async () => {
    await using kube = await cluster()
    const clock = fakeClock()
    await using run = follow(kube.config, { clock, nodes: false })
    for (let round = 1; round < 5; round += 1) {
      await eventually(() => expect(kube.watches).toBe(2))
      kube.endWatches()
      await eventually(async () => {
        await clock.advance(250)
        expect(kube.calls('endpointslices', 'watch')).toHaveLength(round + 1)
      })
    }
    expect(clock.now()).toBeGreaterThanOrEqual(3_000)
    expect(run.told).toEqual([])
  })

  it('keeps the last set while the API is away, and catches up after', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(kube.watches).toBe(3))
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    const given = run.taker.sets.length
    const up = await kube.down()
    await eventually(() => expect(run.follower.synced).toBe(false))
    kube.put(SLICES, slice({ '10.0.0.2': 'TTF' }))
    await eventually(() => expect(run.told.join()).toContain('ECONNREFUSED'))
    expect(run.taker.sets).toHaveLength(given)
    expect(run.follower.problems.length).toBeGreaterThan(0)
    await up()
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.2 serve']))
    await eventually(() => expect(run.follower.synced).toBe(true))
    await eventually(() => expect(run.follower.problems).toEqual([]))
  })

  it('tells an error of the API in one line, without headers or token', async () => {
    await using kube = await cluster()
    kube.trouble = () => ({ status: 500, text: `<html>\n${'x'.repeat(5_000)}\nno</html>` })
    await using run = follow(kube.config)
    await eventually(() => expect(run.told.length).toBeGreaterThanOrEqual(3))
    for (const line of run.told) {
      expect(line).toMatch(/^UNREACHABLE (list|watch) .*: 500 Internal Server Error: <html> x+…$/)
      expect(line.length).toBeLessThan(300)
      expect(line).not.toMatch(/secret/)
    }
  })

  it('never goes back to an older state after a watch broke off', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    await eventually(() => expect(kube.watches).toBe(3))
    kube.put(SLICES, slice({ '10.0.0.1': 'FTT', '10.0.0.2': 'TTF' }))
    const leaving = ['10.0.0.1 drain', '10.0.0.2 serve']
    await eventually(() => expect(run.taker.newest).toEqual(leaving))
    kube.put(SLICES, slice({ '10.0.0.2': 'TTF' }))
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.2 serve']))
    const up = await kube.down()
    await eventually(() => expect(run.follower.synced).toBe(false))
    await up()
    await eventually(() => expect(run.follower.synced).toBe(true))
    const [last] = kube.calls('endpointslices', 'watch').slice(-1)
    const newest = kube.get(SLICES, 'web-x1')?.metadata.resourceVersion
    expect(last?.query.get('resourceVersion')).toBe(newest)
  })

  it('goes on although a listener throws, and the error is not swallowed', async () => {
    await using kube = await cluster()
    const thrown: unknown[] = []
    const keep = (error: unknown): void => void thrown.push(error)
    const before = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', keep)
    try {
      await using run = follow(kube.config)
      run.follower.on('problem', () => {
        throw new Error('of a listener')
      })
      await eventually(() => expect(run.taker.newest).toEqual(BOTH))
      await eventually(() => expect(kube.watches).toBe(3))
      const up = await kube.down()
      await eventually(() => expect(thrown.length).toBeGreaterThan(0))
      await up()
      kube.put(SLICES, slice({ '10.0.0.2': 'TTF' }))
      await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.2 serve']))
    } finally {
      process.removeListener('uncaughtException', keep)
      for (const one of before) process.on('uncaughtException', one)
    }
  })

  it('of a signal that has fired asks nothing', async () => {
    await using kube = await cluster()
    const taker = new Taker()
    const follower = followService(taker, kube.config, WEB, { signal: AbortSignal.abort() })
    await follower.close()
    expect(kube.asked).toEqual([])
    await followService(taker, kube.config, WEB).close()
  })

  it('survives words in a watch that are no event', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(kube.watches).toBe(3))
    kube.tellWatches('<html>proxy</html>')
    await eventually(() => expect(run.told.join()).toContain('MALFORMED_REPLY watch'))
    kube.put(SLICES, slice({ '10.0.0.9': 'TTF' }))
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.9 serve']))
  })

  it('gives one set for all that comes at once', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    const before = run.taker.sets.length
    for (let i = 0; i < 500; i += 1) kube.put(SLICES, slice({ [`10.2.0.${i & 255}`]: 'TTF' }))
    await eventually(() => expect(run.taker.newest).toEqual(['10.2.0.243 serve']))
    expect(run.taker.sets.length - before).toBeLessThan(100)
  })
})

describe('a follower without a right', () => {
  it('to Nodes works without them, and says once what to add', async () => {
    await using kube = await cluster()
    kube.trouble = ({ path }) => (path === NODES ? FORBIDDEN : undefined)
    const clock = fakeClock()
    await using run = follow(kube.config, { clock })
    await eventually(async () => {
      await clock.advance(10)
      expect(run.taker.newest).toEqual(BOTH)
    })
    await clock.advance(20_000)
    expect(run.follower.synced).toBe(true)
    expect(run.told).toEqual([
      `FORBIDDEN list Nodes: 403 Forbidden: nodes is forbidden: User "system:serviceaccount:edge:c" cannot list resource "nodes"; endpoints are followed without their Nodes; to read them a ClusterRole needs { apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] }, or give nodes: false`,
    ])
    expect(kube.calls('nodes', 'list')).toHaveLength(1)
  })

  it('to Nodes reads them once the right was given', async () => {
    await using kube = await cluster()
    kube.put(NODES, node('n0', 'karpenter.sh/disrupted'))
    kube.put(SLICES, slice({ '10.0.0.1': 'TTF', '10.0.0.2': 'TTF@n1' }))
    kube.trouble = ({ path }) => (path === NODES ? FORBIDDEN : undefined)
    const clock = fakeClock()
    await using run = follow(kube.config, { clock })
    await eventually(() => expect(run.told).toHaveLength(1))
    kube.trouble = () => undefined
    await eventually(async () => {
      await clock.advance(10_000)
      expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 serve'])
    })
    expect(run.follower.problems.join()).not.toContain('forbidden')
  })

  it('to slices gives nothing, and names the rule', async () => {
    await using kube = await cluster()
    kube.trouble = ({ path }) => (path === SLICES ? FORBIDDEN : undefined)
    await using run = follow(kube.config)
    await eventually(() => expect(run.told[0]).toContain("resources: ['endpointslices']"))
    expect(run.taker.sets).toEqual([])
    expect(run.follower.synced).toBe(false)
  })

  it('to Services works, and says what it will not notice', async () => {
    await using kube = await cluster()
    kube.trouble = ({ path }) => (path === SERVICES ? FORBIDDEN : undefined)
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    await eventually(() => expect(run.told[0]).toContain("resources: ['services']"))
    expect(run.follower.synced).toBe(true)
  })
})

describe('Nodes', () => {
  it.each(['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted', ...spotTaints])(
    'with taint %s drain while another endpoint serves',
    async (taint) => {
      await using kube = await cluster()
      kube.put(SLICES, slice({ '10.0.0.1': 'TTF', '10.0.0.2': 'TTF@n1' }))
      await using run = follow(kube.config)
      await eventually(() => expect(run.taker.newest).toEqual(BOTH))
      kube.put(NODES, node('n0', taint))
      await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 serve']))
    },
  )

  it('that were deleted drain, and ones that were never seen do not', async () => {
    await using kube = await cluster()
    kube.put(SLICES, slice({ '10.0.0.1': 'TTF', '10.0.0.2': 'TTF@new' }))
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    kube.remove(NODES, 'n0')
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 serve']))
    kube.put(NODES, node('n0'))
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
  })

  it('that were read stay in force while they can not be read', async () => {
    await using kube = await cluster()
    kube.put(NODES, node('n0', 'karpenter.sh/disrupted'))
    kube.put(SLICES, slice({ '10.0.0.1': 'TTF', '10.0.0.2': 'TTF@n1' }))
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 serve']))
    kube.trouble = ({ path }) => (path === NODES ? 'reset' : undefined)
    kube.endWatches()
    await eventually(() => expect(run.follower.synced).toBe(false))
    kube.put(SLICES, slice({ '10.0.0.1': 'TTF', '10.0.0.2': 'TTF@n1', '10.0.0.3': 'TTF@n2' }))
    await eventually(() =>
      expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 serve', '10.0.0.3 serve']),
    )
  })

  it('are not asked for with nodes: false', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config, { nodes: false })
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    expect(kube.calls('nodes', 'list')).toEqual([])
  })
})

describe('a Service', () => {
  it('whose selector was emptied is named', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    kube.put(SERVICES, service('web', null))
    await eventually(() => expect(run.told.join()).toMatch(/Service shop\/web has no selector/))
    kube.put(SERVICES, service())
    await eventually(() => expect(run.follower.problems).toEqual([]))
  })

  it('without a selector, with slices written by hand, is none of our business', async () => {
    await using kube = await cluster()
    kube.put(SERVICES, service('web', null))
    const own = slice({ '10.0.0.1': 'TTF' })
    kube.put(SLICES, {
      ...own,
      metadata: { name: 'web-x1', labels: { 'kubernetes.io/service-name': 'web' } },
    } as never)
    await using run = follow(kube.config)
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.1 serve']))
    await eventually(() => expect(kube.watches).toBe(3))
    expect(run.told).toEqual([])
  })

  it('that does not exist is named', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config, {}, { ...WEB, service: 'wbe' })
    await eventually(() =>
      expect(run.told).toEqual([
        'NOT_FOUND Service shop/wbe does not exist, check its name and namespace',
      ]),
    )
  })

  it('without the port is named with its ports', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config, {}, { ...WEB, port: 'htpp' })
    await eventually(() =>
      expect(run.told).toEqual([
        "NOT_FOUND Service shop/web has no port 'htpp', its ports are http",
      ]),
    )
  })

  it('beside another one gives one whole set of both', async () => {
    await using kube = await cluster()
    kube.put(SLICES, slice({ '10.0.9.1': 'TTF' }, { of: 'api' }))
    kube.put(SLICES, slice({ '10.0.8.1': 'TTF' }, { of: 'not-ours' }))
    const api = { ...WEB, service: 'api', pool: 'api' }
    await using run = follow(kube.config, {}, [WEB, api])
    await eventually(() => expect(run.taker.newest).toEqual([...BOTH, '10.0.9.1 serve']))
    kube.put(SLICES, slice({ '10.0.9.2': 'TTF' }, { of: 'api' }))
    await eventually(() => expect(run.taker.newest).toEqual([...BOTH, '10.0.9.2 serve']))
    expect(run.taker.sets.at(-1)?.map(({ pool }) => pool)).toEqual(['web', 'web', 'api'])
    expect(kube.calls('endpointslices', 'list')).toHaveLength(1)
  })

  it('in two pools is in both', async () => {
    await using kube = await cluster()
    await using run = follow(kube.config, {}, [WEB, { ...WEB, pool: 'canary' }])
    await eventually(() => expect(run.taker.newest).toEqual([...BOTH, ...BOTH]))
  })

  it('is judged anew by adjust() after refresh()', async () => {
    await using kube = await cluster()
    let ready = true
    await using run = follow(kube.config, {
      adjust: (endpoints) => endpoints.map((one) => ({ ...one, conditions: { ready } })),
    })
    await eventually(() => expect(run.taker.newest).toEqual(BOTH))
    ready = false
    run.follower.refresh()
    await eventually(() => expect(run.taker.newest).toEqual(['10.0.0.1 drain', '10.0.0.2 drain']))
  })
})

describe('followService()', () => {
  it('refuses a second follower of one loop, until the first was closed', async () => {
    await using kube = await cluster()
    const taker = new Taker()
    const first = followService(taker, kube.config, WEB)
    expect(() => followService(taker, kube.config, WEB)).toThrow(/name all Services in one call/)
    await first.close()
    await followService(taker, kube.config, WEB).close()
  })

  it.each([
    [{}, { ...WEB, namespace: 'Shop' }, /services: namespace/],
    [{}, [WEB, { ...WEB, prot: 1 }], /services\[1\]: .*prot/],
    [{}, [], /one Service or more/],
    [{ node: true }, WEB, /unknown option 'node'|node/],
    [{ nodeEnd: { taint: [] } }, WEB, /taint/],
    [{ map: { strategy: 'kube-prox' } }, WEB, /kube-prox/],
    [{ signal: 1 }, WEB, /signal/],
    [{ signal: new AbortController() }, WEB, /give controller\.signal/],
    [{ name: Promise.resolve() }, WEB, /name: expected a function, found a promise/],
    [{ clock: { now: Date.now, setTimeout } }, WEB, /a function that cancels it/],
  ])('refuses %j with %j', (options, services, words) => {
    const config = configFor('http://127.0.0.1:1', () => '')
    const run = () => followService(new Taker(), config, services, options as never)
    expect(run).toThrow(words)
  })

  it('can be called again for a loop after it was refused', async () => {
    await using kube = await cluster()
    const taker = new Taker()
    const wrong = { nodeEnd: { taint: [] } } as never
    expect(() => followService(taker, kube.config, WEB, wrong)).toThrow(/taint/)
    await followService(taker, kube.config, WEB).close()
  })

  it('refuses what is no kubeconfig and what is no loop', () => {
    expect(() => followService(new Taker(), {} as never, WEB)).toThrow(/expected a KubeConfig/)
    const config = configFor('http://127.0.0.1:1', () => '')
    expect(() => followService({} as never, config, WEB)).toThrow(/reconcile\(\)/)
  })
})
