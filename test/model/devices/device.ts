import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import type { AdminState, DrainableProvider, MemberRef } from 'drainable/provider'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import type { HttpFakeFailure } from '../../../src/testing/http/request.js'
import type { IoClock } from '../../support/io-clock.js'

/** The products that a story can be played on, by their fakes. */
export const PRODUCTS = ['f5-bigip', 'citrix-adc', 'haproxy-dataplane'] as const
export type Product = (typeof PRODUCTS)[number]

/** How a device of a story is set up. */
export interface Shape {
  /** A second unit stands by. */
  readonly pair: boolean
  /** Milliseconds of each answer. */
  readonly latency: number
  /** Milliseconds by which its numbers can be old. */
  readonly lag: number
}

/** What no message may hold. */
export const SECRET = 'pa55-that-nobody-prints'

/** A device of a story: a fake of a product with three members in one pool. */
export interface Device extends AsyncDisposable {
  readonly members: readonly MemberRef[]
  /** Requests so far. */
  readonly asked: number
  /** A provider object on it, as a process makes one. */
  connect(): DrainableProvider
  state(ref: MemberRef): Promise<AdminState>
  /** In flight and queued, as it truly is. @param known - what a story has begun there and not ended */
  load(ref: MemberRef, known: number): number
  /** Another client sets a member. */
  set(ref: MemberRef, to: AdminState): Promise<void>
  /** Whether a client that comes back to its server is sent to one that drains. */
  readonly persists: boolean
  /** A client's work begins; the returned function ends it. */
  work(ref: MemberRef): Promise<() => Promise<void>>
  fail(what: HttpFakeFailure): () => Promise<void>
  /** Every login is over. */
  logOut(): void
  /** The other unit takes over: the flows are gone with it. Of a single unit, or HAProxy, a new process. */
  takeOver(): Promise<void>
}

/** Which requests of a product change it. */
export const CHANGES = /^(POST|PUT|PATCH|DELETE) /

export async function startDevice(product: Product, shape: Shape, clock: IoClock): Promise<Device> {
  switch (product) {
    case 'f5-bigip':
      return bigip(shape, clock)
    case 'citrix-adc':
      return citrix(shape, clock)
    case 'haproxy-dataplane':
      return dataplane(shape, clock)
  }
}

const NAMES = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']

/** Its statistics have no lag: the fake gathers them by the real clock. */
async function bigip({ pair, latency }: Shape, clock: IoClock): Promise<Device> {
  const fake = await startBigip({
    pools: { web: NAMES },
    tls: false,
    password: SECRET,
    latency,
    clock: clock.latency,
    ...(pair && { pair: { autoSync: true } }),
  })
  const members = NAMES.map((name) => ({ pool: '/Common/web', member: `/Common/${name}` }))
  return {
    members,
    persists: true,
    get asked() {
      return fake.requests.length
    },
    connect: () =>
      f5Bigip({
        url: fake.urls,
        username: fake.username,
        password: SECRET,
        freshness: 1_000,
      }),
    state: (ref) => Promise.resolve(fake.state(ref)),
    load: (ref) => fake.load(ref).curConns + fake.load(ref).depth,
    set: (ref, to) => fake.setBehind(ref, to),
    work: (ref) => fake.occupy(ref),
    fail: (what) => fake.fail(what),
    logOut: () => fake.expireTokens(),
    takeOver: () => fake.failover(),
    [Symbol.asyncDispose]: () => fake.close(),
  }
}

async function citrix({ pair, latency, lag }: Shape, clock: IoClock): Promise<Device> {
  const fake = await startCitrix({
    pools: { web: NAMES },
    tls: false,
    password: SECRET,
    ha: pair,
    statInterval: lag,
    latency,
    clock: { ...clock.latency, now: clock.now },
  })
  const members = NAMES.map((member) => ({ pool: 'web', member }))
  return {
    members,
    persists: false,
    get asked() {
      return fake.requests.length
    },
    connect: () =>
      citrixAdc({
        url: fake.urls,
        username: 'admin',
        password: SECRET,
        freshness: lag + 1_000,
      }),
    // Out of service by itself once it has drained: both are one here.
    state: (ref) => Promise.resolve(fake.look(ref).enabled ? 'ready' : 'drain'),
    load: (ref) => fake.look(ref).active + fake.look(ref).queued,
    set: (ref, to) => fake.setBehind(ref, to),
    work: (ref) => fake.occupy(ref),
    fail: (what) => fake.fail(what),
    logOut: () => fake.expireSessions(),
    takeOver: () => fake.failover(),
    [Symbol.asyncDispose]: () => fake.close(),
  }
}

async function dataplane({ latency }: Shape, clock: IoClock): Promise<Device> {
  const names = ['web1', 'web2', 'web3']
  const fake = await startDataplane({
    pools: { web: names },
    password: SECRET,
    latency,
    clock: clock.latency,
    uptime: 100_000,
  })
  return {
    members: names.map((member) => ({ pool: 'web', member })),
    persists: true,
    get asked() {
      return fake.requests.length
    },
    connect: () => haproxyDataplane({ url: fake.url, username: 'admin', password: SECRET }),
    state: async ({ pool, member }) => {
      const rows = (await fake.run(`show servers state ${pool}`)).split('\n')
      const row = rows.map((line) => line.split(' ')).find((cells) => cells[3] === member)
      const mask = Number(row?.[6])
      return (mask & 1) !== 0 ? 'maint' : (mask & 8) !== 0 ? 'drain' : 'ready'
    },
    load: (_, known) => known,
    set: (ref, to) => fake.setBehind(ref, to),
    work: (ref) => fake.occupy(ref),
    fail: (what) => fake.fail(what),
    logOut: () => undefined,
    takeOver: () => fake.reload(),
    [Symbol.asyncDispose]: () => fake.close(),
  }
}
