import { spawnSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  combineProviders,
  drain,
  ready,
  restore,
  roll,
  startDrain,
  startRoll,
  stepDrain,
  watch,
  withEvents,
  type DrainableProvider,
  type DrainEvent,
  type DrainStep,
  type StepOptions,
  type StepStart,
  type TelemetryChannels,
  type Ticket,
} from 'drainable'
import { fakeClock, fakeProvider, type FakeClock } from 'drainable/testing'
import { stepped } from './stepped.js'

const web1 = { pool: 'web', member: 'web1' }
const pools = { web: ['web1', 'web2', 'web3'] }

/** Hears one channel until it is disposed. Names of balancers keep files apart that share a process. */
function heard<N extends keyof TelemetryChannels>(name: N, instance: string) {
  const messages: TelemetryChannels[N][] = []
  const hear = (message: unknown): void => {
    const its = message as TelemetryChannels[N]
    if (its.instance === instance) messages.push(its)
  }
  subscribe(name, hear)
  return { messages, [Symbol.dispose]: () => void unsubscribe(name, hear) }
}

describe('the channel drainable:drain', () => {
  it('has every event of a drain, from begin to end, under one number', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using seen = heard('drainable:drain', lb.instance)
    const told: string[] = []
    await clock.runUntil(
      drain(lb, web1, { clock, timeout: '1m', onEvent: ({ type }) => told.push(type) }),
    )
    const types = seen.messages.map(({ event }) => event.type)
    expect(types.slice(0, told.length + 1)).toEqual(['begin', ...told])
    expect(types).toContain('end')
    expect(new Set(seen.messages.map(({ run }) => run)).size).toBe(1)
    expect(seen.messages[0]).toMatchObject({ verb: 'drain', provider: lb.name })
  })

  it('tells two drains of one member apart', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using seen = heard('drainable:drain', lb.instance)
    await clock.runUntil(Promise.all([1, 2].map(() => drain(lb, web1, { clock, timeout: '1m' }))))
    expect(new Set(seen.messages.map(({ run }) => run)).size).toBe(2)
  })

  it('says of a watch that it is one', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using seen = heard('drainable:drain', lb.instance)
    const handle = watch(lb, web1, { clock })
    await clock.advance(1_000)
    await handle.release()
    expect(seen.messages[0]).toMatchObject({ verb: 'watch', event: { type: 'begin' } })
  })

  it('is told what follows by a subscriber that comes late', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    using seen = heard('drainable:drain', lb.instance)
    await clock.runUntil(run.done)
    expect(seen.messages.map(({ event }) => event.type)).toContain('end')
    await run.release()
  })
})

/** Makes steps until the drain has its outcome, and two more. */
async function allSteps(
  lb: DrainableProvider,
  clock: FakeClock,
  start: StepStart,
  options: StepOptions = {},
): Promise<Ticket> {
  let from: Ticket | StepStart = start
  for (let after = 0; after < 2;) {
    const step: DrainStep = await stepped(lb, from, { ...options, clock })
    from = JSON.parse(JSON.stringify(step.ticket)) as Ticket
    if (step.outcome !== undefined) after += 1
    await clock.advance(step.againIn)
  }
  return from as Ticket
}

describe('a drain that is made of steps', () => {
  const ends = (messages: readonly TelemetryChannels['drainable:drain'][]) =>
    messages.flatMap(({ event }) => (event.type === 'end' ? [event] : []))

  it('is one run, whose end has the time of all its steps', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using seen = heard('drainable:drain', lb.instance)
    const free = lb.occupy(web1)
    clock.setTimeout(free, 20_000)
    const ticket = await allSteps(lb, clock, { target: web1, policy: { timeout: '1m' } })
    expect(new Set(seen.messages.map(({ run }) => run))).toEqual(new Set([`ticket:${ticket.id}`]))
    expect(seen.messages[0]).toMatchObject({
      verb: 'drain',
      event: { type: 'begin', refs: [web1] },
    })
    expect(seen.messages.filter(({ event }) => event.type === 'begin')).toHaveLength(1)
    const [end, ...more] = ends(seen.messages)
    expect(more).toEqual([])
    expect(end).toMatchObject({ outcome: 'idle', report: { members: [{ ref: web1 }] } })
    expect(end?.report.elapsed).toBeGreaterThan(20_000)
  })

  it('over several balancers is one run of them together', async () => {
    const clock = fakeClock()
    await using a = fakeProvider({ pools, clock })
    await using b = fakeProvider({ pools, clock })
    const lb = combineProviders({ a, b })
    using seen = heard('drainable:drain', lb.instance)
    using ofA = heard('drainable:drain', a.instance)
    const free = b.occupy(web1)
    clock.setTimeout(free, 10_000)
    const target = ['a', 'b'].map((balancer) => ({ balancer, ...web1 }))
    await allSteps(lb, clock, { target, policy: { timeout: '1m' } })
    expect(new Set(seen.messages.map(({ run }) => run)).size).toBe(1)
    expect(ends(seen.messages)).toMatchObject([
      { outcome: 'idle', report: { members: target.map((ref) => ({ ref })) } },
    ])
    expect(ofA.messages).toEqual([])
  })

  it.each(['gone', 'aborted'] as const)('that %s at its first step has ended', async (how) => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using seen = heard('drainable:drain', lb.instance)
    const stop = new AbortController()
    const target = how === 'gone' ? { pool: 'web', member: 'web9' } : web1
    const step = stepDrain(lb, { target }, { clock, signal: stop.signal })
    if (how === 'aborted') stop.abort(new Error('not now'))
    await expect(clock.runUntil(step)).rejects.toThrow()
    const outcome = how === 'gone' ? 'refused' : 'aborted'
    expect(seen.messages.map(({ event }) => event.type)).toEqual(['begin', 'end'])
    expect(ends(seen.messages)).toMatchObject([{ outcome }])
  })

  it('has not ended by a later step that fails', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    const { ticket } = await stepped(lb, { target: web1 }, { clock })
    using seen = heard('drainable:drain', lb.instance)
    const stop = new AbortController()
    const step = stepDrain(lb, ticket, { clock, signal: stop.signal })
    stop.abort(new Error('not now'))
    await expect(clock.runUntil(step)).rejects.toThrow('not now')
    expect(ends(seen.messages)).toEqual([])
  })

  it('tells a listener of the provider its end once, and no end of a step', async () => {
    const clock = fakeClock()
    await using fake = fakeProvider({ pools, clock })
    const lb = withEvents(fake)
    const told: DrainEvent[] = []
    lb.on('end', (event) => told.push(event))
    const free = fake.occupy(web1)
    clock.setTimeout(free, 10_000)
    await allSteps(lb, clock, { target: web1, policy: { timeout: '1m' } })
    expect(told).toMatchObject([{ outcome: 'idle' }])
  })
})

describe('the channel drainable:roll', () => {
  it('has the events of the roll itself, and each drain is a run of its own', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using rolls = heard('drainable:roll', lb.instance)
    using drains = heard('drainable:drain', lb.instance)
    const options = { clock, timeout: '1m', keepReady: 1, act: async () => {} } as const
    await clock.runUntil(roll(lb, { pool: 'web' }, options))
    const types = rolls.messages.map(({ event }) => event.type)
    expect(types[0]).toBe('begin')
    expect(types.at(-1)).toBe('roll-end')
    expect(types.filter((type) => type === 'act')).toHaveLength(3)
    expect(types).not.toContain('phase')
    expect(new Set(drains.messages.map(({ run }) => run)).size).toBe(3)
  })
})

describe('the channel drainable:change', () => {
  it('has each change with its answer and how long it took', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using seen = heard('drainable:change', lb.instance)
    await clock.runUntil(drain(lb, web1, { clock, timeout: '1m' }))
    const [first] = seen.messages
    expect(first).toMatchObject({ ref: web1, kind: 'hold', to: 'drain', status: 'applied' })
    expect(first?.took).toBeGreaterThanOrEqual(0)
  })
})

describe('the channel drainable:fault', () => {
  it.each(['ready()', 'restore()', 'stepDrain()'])(
    'has the fault of %s once, with and without a listener of its own',
    async (verb) => {
      const clock = fakeClock()
      await using lb = fakeProvider({ pools, clock })
      const held = startDrain(lb, web1, { clock, timeout: '1m' })
      await clock.runUntil(held.done)
      const ticket = await held.ticket
      await held.release()
      using faults = heard('drainable:fault', lb.instance)
      const told: unknown[] = []
      const onEvent = (event: DrainEvent): void => {
        if (event.type === 'fault') told.push(event.error)
      }
      for (const options of [{ clock }, { clock, onEvent }]) {
        lb.setBehind(web1, verb === 'stepDrain()' ? 'ready' : 'maint')
        lb.failNext('unknown', { verb: 'apply' })
        const from = { target: web1 }
        if (verb === 'ready()') await clock.runUntil(ready(lb, web1, options))
        else if (verb === 'restore()') await clock.runUntil(restore(lb, ticket, options))
        else await clock.runUntil(stepDrain(lb, from, { ...options, onTicket: async () => {} }))
      }
      expect(faults.messages).toMatchObject([
        { ref: web1, error: { code: 'CONNECTION_LOST' } },
        { ref: web1, error: { code: 'CONNECTION_LOST' } },
      ])
      expect(told).toEqual([faults.messages[1]?.error])
    },
  )
})

describe('the channels drainable:look and drainable:fault', () => {
  it('have a look that failed, and the fault that it was', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    using looks = heard('drainable:look', lb.instance)
    using faults = heard('drainable:fault', lb.instance)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.runUntil(run.inForce)
    lb.failNext('throw', { verb: 'observe' })
    await clock.runUntil(run.done)
    await run.release()
    expect(looks.messages.filter(({ error }) => error?.code === 'CONNECTION_LOST')).toHaveLength(1)
    expect(looks.messages.some(({ error }) => error === undefined)).toBe(true)
    expect(faults.messages).toMatchObject([{ ref: web1, error: { code: 'CONNECTION_LOST' } }])
  })
})

describe('a handle that is printed', () => {
  it('shows target, phase and outcome of a drain', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    expect(inspect(run)).toMatch(/^Drain \{ target: 'web\/web1', .*outcome: 'in progress' \}$/)
    await clock.runUntil(run.done)
    expect(inspect(run)).toMatch(/phase: \{ 'web\/web1': 'idle' \}, outcome: 'idle' \}$/)
    await run.release()
  })

  it('shows the servers and the outcome of a roll', async () => {
    const clock = fakeClock()
    await using lb = fakeProvider({ pools, clock })
    const options = { clock, timeout: '1m', keepReady: 1, act: async () => {} } as const
    const run = startRoll(lb, web1, options)
    await clock.runUntil(run.done)
    expect(inspect(run)).toBe("Roll { servers: { 'web/web1': 'done' }, outcome: 'done' }")
  })
})

describe('NODE_DEBUG=drainable', () => {
  const program = `
import { drain } from 'drainable'
import { fakeProvider } from 'drainable/testing'
await using lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '10s' })`
  const printed = (env: Record<string, string>): string => {
    const source = fileURLToPath(new URL('../../../scripts/source.mjs', import.meta.url))
    const args = ['--import', source, '--input-type=module', '-e', program]
    const { status, stderr } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
    expect(status).toBe(0)
    return stderr
  }

  it('prints what happens, without the report', () => {
    const lines = printed({ NODE_DEBUG: 'drainable' })
    for (const name of ['drain', 'change', 'look']) expect(lines).toContain(`drainable:${name} {`)
    expect(lines).toContain('"type":"idle"')
    expect(lines).not.toContain('"report"')
  })
})
