import { expect, test } from 'vitest'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { DrainableError, type Change } from 'drainable/provider'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const members = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']
const [first = ''] = members
const ref = { pool: 'web', member: first }
const remove: Change = { kind: 'remove', ref }

interface Set {
  readonly cluster_name: string
  readonly endpoints: readonly { readonly lb_endpoints: readonly Lb[] }[]
}
interface Lb {
  readonly endpoint: { readonly address: { readonly socket_address: { readonly address: string } } }
  readonly health_status?: string
}

function setOf(names: readonly string[], statuses: Readonly<Record<string, string>> = {}): Set {
  const lb = names.map((name) => ({
    endpoint: { address: { socket_address: { address: name.slice(0, -3), port_value: 80 } } },
    ...(statuses[name] === undefined ? {} : { health_status: statuses[name] }),
  }))
  return { cluster_name: 'web', endpoints: [{ lb_endpoints: lb }] }
}

/** Status by address, `-` where none is written. */
function statusesOf(set: Set): Readonly<Record<string, string>> {
  const all = set.endpoints.flatMap(({ lb_endpoints }) => lb_endpoints)
  return Object.fromEntries(
    all.map((lb) => [`${lb.endpoint.address.socket_address.address}:80`, lb.health_status ?? '-']),
  )
}

/** A control plane with active checks, so that a removal is first marked UNHEALTHY. */
async function open(initial: Set, on: (plane: Plane) => void = () => undefined) {
  const fake = await startFake({ pools: { web: members }, activeChecks: true })
  const plane: Plane = {
    set: initial,
    published: [],
    afterPublish: () => undefined,
    beforeLoad: () => undefined,
  }
  on(plane)
  const lb = envoy({
    endpoints: callbackEndpoints({
      load: () => {
        plane.beforeLoad()
        return Promise.resolve(plane.set)
      },
      publish: (set) => {
        plane.set = set as Set
        plane.published.push(statusesOf(plane.set)[first] ?? 'gone')
        plane.afterPublish()
        return Promise.resolve()
      },
    }),
    admin: [fake.url],
  })
  const clock = systemClock
  const apply = async (change: Change) => {
    const [result] = await lb.apply([change], { signal: AbortSignal.timeout(10_000), clock })
    return result
  }
  return {
    plane,
    apply,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
    },
  }
}

interface Plane {
  set: Set
  /** What each publication said of the first endpoint. */
  readonly published: string[]
  afterPublish: () => void
  beforeLoad: () => void
}

const away = new DrainableError('FORBIDDEN', 'the control plane refuses every look')

test('a removal that was marked and then refused is unmarked', async () => {
  await using it = await open(setOf(members, { [first]: 'DRAINING' }), (plane) => {
    plane.afterPublish = () => {
      let refusals = plane.published.length === 1 ? 1 : 0
      plane.beforeLoad = () => {
        if (refusals-- > 0) throw away
      }
    }
  })
  expect(await it.apply(remove)).toMatchObject({ status: 'rejected', error: { code: 'FORBIDDEN' } })
  expect(it.plane.published).toEqual(['UNHEALTHY', 'DRAINING'])
})

test('a removal that stays marked is unknown, not refused', async () => {
  await using it = await open(setOf(members, { [first]: 'DRAINING' }), (plane) => {
    plane.afterPublish = () => {
      plane.beforeLoad = () => {
        throw away
      }
    }
  })
  expect(await it.apply(remove)).toMatchObject({ status: 'unknown', error: { code: 'FORBIDDEN' } })
  expect(it.plane.published).toEqual(['UNHEALTHY'])
})

test('a removal that another change prevents is unmarked in that set', async () => {
  await using it = await open(setOf(members, { [first]: 'DRAINING' }), (plane) => {
    plane.afterPublish = () => {
      // Another client takes all others out, and keeps our mark
      if (plane.published.length === 1) plane.set = setOf([first], { [first]: 'UNHEALTHY' })
    }
  })
  const result = await it.apply(remove)
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
  expect(it.plane.published).toEqual(['UNHEALTHY', 'DRAINING'])
  expect(statusesOf(it.plane.set)).toEqual({ [first]: 'DRAINING' })
})

test('a mark that another client took away is not put back', async () => {
  await using it = await open(setOf(members, { [first]: 'DRAINING' }), (plane) => {
    plane.afterPublish = () => {
      if (plane.published.length === 1) plane.set = setOf([first], { [first]: 'HEALTHY' })
    }
  })
  expect(await it.apply(remove)).toMatchObject({ status: 'rejected' })
  expect(it.plane.published).toEqual(['UNHEALTHY'])
  expect(statusesOf(it.plane.set)).toEqual({ [first]: 'HEALTHY' })
})

test('a removal that others always overtake is unknown, not refused', async () => {
  let port = 0
  await using it = await open(setOf(members, { [first]: 'DRAINING' }), (plane) => {
    plane.beforeLoad = () => {
      if (plane.published.at(-1) !== 'UNHEALTHY' || port > 20) return
      // Each look finds another set, until the removal is given up
      const more = Array.from({ length: (port += 1) }, (_, i) => `10.0.9.${i + 1}:80`)
      plane.set = setOf([...members, ...more], { [first]: 'UNHEALTHY' })
    }
  })
  const result = await it.apply(remove)
  expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
})
