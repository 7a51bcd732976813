import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const clock = systemClock
const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock })
const names = Array.from({ length: 12 }, (_, i) => `10.0.0.${i + 1}:80`)
const setWith = (members: readonly string[]) => ({
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: members.map((name) => ({
        endpoint: {
          address: { socket_address: { address: name.slice(0, -3), port_value: 80 } },
        },
      })),
    },
  ],
})
const set = setWith(names)
const hold = (member: string) =>
  ({ kind: 'hold', ref: { pool: 'web', member }, to: 'drain' }) as const
const chosen = names.slice(0, 6)

test('simultaneous changes of two providers on one file are all done', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const path = join(dir, 'web.json')
  await writeFile(path, JSON.stringify({ version_info: '1', resources: [set] }))
  await using fake = await startFake({ pools: { web: [] }, eds: { file: path } })
  const open = () =>
    envoy({
      endpoints: fileEndpoints({ cluster: 'web', path }),
      admin: [fake.url],
      onPanic: 'allow',
    })
  await using one = open()
  await using two = open()
  const results = await Promise.all(
    chosen.map((member, i) => (i % 2 === 0 ? one : two).apply([hold(member)], ctx())),
  )
  expect(results.flat().map(({ status }) => status)).toEqual(chosen.map(() => 'applied'))
  const text = await readFile(path, 'utf8')
  expect(text.match(/DRAINING/g)).toHaveLength(chosen.length)
  const { readings } = await one.observe('all', ctx())
  expect(readings.filter((r) => r.present && r.own === 'drain')).toHaveLength(chosen.length)
  await rm(dir, { recursive: true, force: true })
})

test('a set replaced in the middle of a change is not lost', async () => {
  const sink = restEndpoints({ port: 0, initial: [set] })
  await using fake = await startFake({ pools: { web: names } })
  await using lb = envoy({ endpoints: sink, admin: [fake.url], onPanic: 'allow' })
  await lb.observe('all', ctx())
  const change = lb.apply([hold(chosen[0]!)], ctx())
  const more = structuredClone(set)
  more.endpoints[0]?.lb_endpoints.push({
    endpoint: { address: { socket_address: { address: '10.0.9.9', port_value: 80 } } },
  })
  await sink.set([more])
  expect((await change)[0]?.status).toBe('applied')
  const { readings } = await lb.observe('all', ctx())
  expect(readings).toHaveLength(13)
  expect(
    readings.filter((r) => r.present && r.own === 'drain').map(({ ref }) => ref.member),
  ).toEqual([chosen[0]])
})

test('an endpoint added while a change is prepared is not lost', async () => {
  await using fake = await startFake({ pools: { web: names } })
  let members: readonly string[] = names
  let published: unknown
  let loads = 0
  const sink = callbackEndpoints({
    load: () => {
      const now = setWith(members)
      // Right after the change has read the set.
      if (++loads === 1) members = [...names, '10.0.9.9:80']
      return Promise.resolve(now)
    },
    publish: (set) => {
      published = set
      return Promise.resolve()
    },
  })
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  const results = await lb.apply(
    [{ kind: 'hold', ref: { pool: 'web', member: names[0]! }, to: 'drain' }],
    ctx(),
  )
  expect(results[0]?.status).toBe('applied')
  expect(JSON.stringify(published)).toContain('10.0.9.9')
  expect(JSON.stringify(published).match(/DRAINING/g)).toHaveLength(1)
})
