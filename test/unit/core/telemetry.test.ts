import { spawnSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  drain,
  ready,
  restore,
  roll,
  startDrain,
  startRoll,
  stepDrain,
  watch,
  type DrainEvent,
  type TelemetryChannels,
} from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'

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
