/**
 * What a user process takes from its host beside the clock it is given: the wall clock, the uptime,
 * randomness, and its own globals. All of it follows the scenario, so that one seed is one story.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import os from 'node:os'
import { syncBuiltinESMExports } from 'node:module'
import { host as ownHost } from '../../../src/core/tickets/owner.js'

/** What two processes do not share although they run in this one: what the library leaves on `globalThis`. */
export type Globals = Map<symbol, unknown>

/** The machine of a user process, beside the one that the scenario begins on. */
export interface Machine {
  /** How far its wall clock is ahead, in milliseconds. */
  readonly ahead: number
  /** For how much longer it has been up, in milliseconds. */
  readonly older: number
  readonly boot: string
}

const FIRST: Machine = { ahead: 0, older: 0, boot: 'the first boot' }
const MACHINE = Symbol('the machine of a user process')

/** Says on which machine a user process runs. */
export function runsOn(globals: Globals, machine: Machine): void {
  globals.set(MACHINE, machine)
}

function machine(): Machine {
  return (processes.getStore()?.get(MACHINE) as Machine | undefined) ?? FIRST
}

/** Where wall time, uptime and randomness come from at the moment. */
export interface Host {
  /** Epoch milliseconds. */
  wall(): number
  /** Milliseconds since the host started. */
  uptime(): number
  random(): number
}

/** Where the library keeps what its copies in one process share. */
const SHARED = [Symbol.for('drainable.home.1')]
const processes = new AsyncLocalStorage<Globals>()
const nowhere: Globals = new Map()

/** Runs code of one user process: what it leaves on `globalThis` is seen by that process alone. */
export function inProcess<T>(globals: Globals, run: () => T): T {
  return processes.run(globals, run)
}

/** Puts a host under this process; the returned function takes it away, and all that its user processes still wait for. */
export function withHost(host: Host): () => void {
  const real = {
    Date: globalThis.Date,
    random: Math.random,
    uptime: os.uptime,
    boot: ownHost.boot,
    setTimeout: globalThis.setTimeout,
  }
  const wall = (): number => host.wall() + machine().ahead
  class HostDate extends real.Date {
    constructor(...given: [] | [string | number | Date]) {
      if (given.length === 0) super(wall())
      else super(given[0])
    }

    static override now(): number {
      return wall()
    }
  }
  globalThis.Date = HostDate as DateConstructor
  Math.random = () => host.random()
  os.uptime = () => (host.uptime() + machine().older) / 1_000
  ownHost.boot = () => machine().boot
  syncBuiltinESMExports()
  for (const name of SHARED) {
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get: () => (processes.getStore() ?? nowhere).get(name),
      set: (value: unknown) => void (processes.getStore() ?? nowhere).set(name, value),
    })
  }
  const timers = new Set<NodeJS.Timeout>()
  globalThis.setTimeout = ((fn: () => void, ms?: number) => {
    const timer = real.setTimeout(() => {
      timers.delete(timer)
      fn()
    }, ms)
    timers.add(timer)
    return timer
  }) as typeof setTimeout
  return () => {
    // The library limits some calls by the machine's own clock: a process that was killed in one would wake up later.
    for (const timer of timers) clearTimeout(timer)
    globalThis.setTimeout = real.setTimeout
    globalThis.Date = real.Date
    Math.random = real.random
    os.uptime = real.uptime
    ownHost.boot = real.boot
    syncBuiltinESMExports()
    for (const name of SHARED) Reflect.deleteProperty(globalThis, name)
    nowhere.clear()
  }
}
