import { describe, expect, test } from 'vitest'
import {
  combineProviders,
  DrainableError,
  resumeRoll,
  startRoll,
  type DrainableProvider,
  type Roll,
  type Ticket,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { withHost } from '../../model/user/host.js'
import { UserProcess } from '../../model/user/user-process.js'
import { jsonStore } from '../combined/set-up.js'
import { seenAs } from './set-up.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** The same balancer, which loses the answer to the first step of an opening and can't be reached after it. */
function silentAt(lb: FakeProvider, isDone: boolean): DrainableProvider {
  const plain = seenAs(lb, (reading) => reading)
  let lost = false
  return {
    ...plain,
    apply: async (changes, ctx) => {
      if (lost || !changes.some(({ kind }) => kind === 'restore')) return lb.apply(changes, ctx)
      lost = true
      if (isDone) await lb.apply(changes, ctx)
      lb.disconnect()
      throw new DrainableError('CONNECTION_LOST', 'the connection is gone', { retryable: true })
    },
  }
}

/** A roll whose first server is half opened when its balancer is silent, until the roll ends; another process goes on. */
async function halfOpened(isDone: boolean, two: boolean) {
  const clock = fakeClock(1_000, Date.UTC(2026, 0, 1))
  const leave = withHost({ wall: () => clock.wall(), uptime: () => clock.now(), random: () => 0.5 })
  try {
    const pools = { web: ['web1', 'web2', 'web3'] }
    const sides = ['a', 'b'].map((instance) => fakeProvider({ pools, clock, instance }))
    const tickets = jsonStore()
    const acted: string[] = []
    const begin = (process: UserProcess, ticket?: Ticket): Roll => {
      const [a, b] = sides.map((side, n) =>
        n === 0 && ticket === undefined
          ? silentAt(side, isDone)
          : seenAs(side, (reading) => reading),
      )
      const all = two ? combineProviders({ a: a!, b: b! }) : a!
      const target = two
        ? ['a', 'b'].map((balancer) => ({ pool: 'web', balancer }))
        : { pool: 'web' }
      const act = async ({ ref, attempt }: { ref: { member: string }; attempt: number }) =>
        void acted.push(`${ref.member} ${attempt}`)
      const options = { act, clock: process.clock, tickets } as const
      return process.run(() =>
        ticket === undefined
          ? startRoll(all, target, { ...options, id: 'job' })
          : resumeRoll(all, ticket, options),
      )
    }
    const first = new UserProcess(1, clock)
    const stopped = await clock.runUntil(begin(first).done)
    const left = sides[0]!.state(WEB1)
    first.die()
    sides[0]!.connect()
    const ticket = (await tickets.get('job')) as Ticket
    const report = await clock.runUntil(begin(new UserProcess(2, clock), ticket).done)
    const states = sides.map((side) => side.state(WEB1))
    return { stopped, left, ticket, report, acted, states, tickets }
  } finally {
    leave()
  }
}

describe.each([false, true])('a half-opened server (two balancers: %s)', (two) => {
  test.each([false, true])(
    'is opened by the next process without another act (step done: %s)',
    async (isDone) => {
      const { stopped, left, ticket, report, acted, states, tickets } = await halfOpened(
        isDone,
        two,
      )
      expect(left).toBe(isDone ? 'drain' : 'maint')
      expect(stopped.outcome).toBe('stopped')
      expect(stopped.leftDrained).toEqual([two ? { ...WEB1, balancer: 'a' } : WEB1])
      expect(ticket.roll?.servers[0]).toMatchObject({ state: 'acted', attempt: 1 })
      expect(acted).toEqual(['web1 1', 'web2 1', 'web3 1'])
      expect(report).toMatchObject({ outcome: 'done', leftDrained: [], leftAsFound: [] })
      expect(states).toEqual(['ready', 'ready'])
      expect(tickets.map.size).toBe(0)
    },
  )
})
