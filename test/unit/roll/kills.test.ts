import { describe, test } from 'vitest'
import {
  combineProviders,
  resumeRoll,
  startRoll,
  type Roll,
  type RollOptions,
  type Ticket,
} from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { withHost } from '../../model/user/host.js'
import { Mortal, type Death } from '../../model/user/mortal.js'
import { UserProcess } from '../../model/user/user-process.js'
import { AT_ANY, expectEveryDeath } from '../../support/deaths.js'
import { jsonStore } from '../combined/set-up.js'

const NAMES = ['web1', 'web2', 'web3']
/** More calls than one roll has. */
const MOST = 500
/** Interval of looks in milliseconds. Few looks are enough, since dying at one or at the next is the same. */
const PACE = 100

/** A roll behind two balancers whose process dies at one of its calls, and the process that goes on. */
async function play(death: Death): Promise<{ died: boolean; wrong: readonly string[] }> {
  const clock = fakeClock(1_000, Date.UTC(2026, 0, 1))
  const leave = withHost({ wall: () => clock.wall(), uptime: () => clock.now(), random: () => 0.5 })
  const pools = { web: NAMES }
  const capabilities = { minInterval: PACE }
  const sides = ['a', 'b'].map((instance) => fakeProvider({ pools, clock, instance, capabilities }))
  const tickets = jsonStore()
  const wrong: string[] = []
  const attempts = new Map<string, number>()
  const done = new Set<string>()
  const end = sides[0]?.occupy({ pool: 'web', member: 'web2' })
  clock.setTimeout(() => end?.(), 4_000)

  const begin = (process: UserProcess, of: Mortal, ticket: Ticket | undefined): Roll => {
    const [a, b] = sides.map((lb) => of.balancer(lb))
    const lb = combineProviders({ a: a!, b: b! })
    const act: RollOptions['act'] = ({ ref: { member }, attempt }) =>
      of.other(async () => {
        if (done.has(member)) wrong.push(`${member} is acted on although it is done`)
        if (attempt <= (attempts.get(member) ?? 0))
          wrong.push(`${member}: attempt ${attempt} again`)
        attempts.set(member, attempt)
        for (const side of sides) {
          const ref = { pool: 'web', member }
          if (side.load(ref) > 0 || side.state(ref) === 'ready')
            wrong.push(`${member} is acted on while it serves on ${side.instance}`)
        }
      })
    const options = {
      act,
      clock: process.clock,
      tickets: of.store(tickets),
      settle: '0ms',
    } as const
    const { settle, ...resumed } = options
    const run = process.run(() =>
      ticket === undefined
        ? startRoll(
            lb,
            ['a', 'b'].map((balancer) => ({ pool: 'web', balancer })),
            { ...resumed, settle, id: 'job' },
          )
        : resumeRoll(lb, ticket, resumed),
    )
    run.on('healthy', ({ ref }) => done.add(ref.member))
    return run
  }

  try {
    const first = new UserProcess(1, clock)
    let over = false
    void begin(first, new Mortal(first, death), undefined).done.then(() => (over = true))
    const isOver = (): boolean => over || !first.alive
    for (let i = 0; i < 600 && !isOver(); i += 1) await clock.advance(100)
    const died = !first.alive
    if (died) {
      await clock.advance(1_000)
      const next = new UserProcess(2, clock)
      const ticket = (await tickets.get('job')) as Ticket | undefined
      // Without a ticket nothing was begun, or all of it is done.
      const isDone = ticket === undefined && attempts.size === NAMES.length
      if (!isDone) {
        const report = await clock.runUntil(begin(next, new Mortal(next), ticket).done)
        if (report.outcome !== 'done')
          wrong.push(`it ends ${report.outcome}: ${report.error?.message}`)
      }
    }
    for (const side of sides)
      for (const member of NAMES)
        if (side.state({ pool: 'web', member }) !== 'ready')
          wrong.push(`${member} is left ${side.state({ pool: 'web', member })} on ${side.instance}`)
    for (const member of NAMES) if (!attempts.has(member)) wrong.push(`${member} was not acted on`)
    if (tickets.map.has('job')) wrong.push('the ticket is kept')
    return { died, wrong: wrong.map((what) => `call ${death.at}: ${what}`) }
  } finally {
    leave()
  }
}

describe(`a roll whose process dies at ${AT_ANY} of its calls`, () => {
  test.each(['done', 'lost'] as const)(
    'is continued by another one if that call is %s',
    // A story for each call: a loaded machine takes its time.
    { timeout: 180_000 },
    (last) => expectEveryDeath(play, last, { least: 30, most: MOST }),
  )
})
