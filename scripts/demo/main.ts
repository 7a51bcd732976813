/**
 * `npm run demo`: takes every server out of a real, loaded HAProxy in turn, kills it at the very moment it is called
 * idle, replaces it and brings it back, with a reload in between; and counts what went wrong on the way.
 *
 *     npm run demo              # on a real HAProxy, fetched if there is none
 *     npm run demo -- --fake    # on the fake that comes with this package
 *     npm run demo -- --json    # with the whole proof, sample by sample
 *     npm run demo -- --report demo.html   # and draws what happened: counts over time, states, the reload (.svg: the picture alone)
 *     npm run demo -- --fleet   # four servers behind two HAProxy and an Envoy at once, as one roll
 *
 * The last line is JSON. Status 1 if a request failed or a server was busy when it was called idle.
 */
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { drain, isDrainableError, ready, select, watch } from 'drainable'
import type { DrainableProvider, DrainEvent, DrainReport, Reading } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { Backend } from './backend.ts'
import type { Count } from './backend.ts'
import { freePort } from '../ports.ts'
import { page } from '../../src/cli/report/page.js'
import { TimelineRecorder } from '../../src/cli/report/timeline.js'
import { version } from '../../src/cli/version.js'
import { findEngine, startHaproxy, startStandIn } from './balancer.ts'
import type { Balancer } from './balancer.ts'
import { Clients } from './clients.ts'
import { runFleet } from './fleet.ts'
import { Screen } from './screen.ts'
import { pictureFile } from './picture.ts'

const NAMES = ['web1', 'web2', 'web3'] as const
/** Slow requests of each drained server: more than it takes at once, so that some are queued. */
const SLOW = 8
const AT_LEAST = 2_000
/** Longer than one drain takes, in milliseconds. */
const OUTLASTS = 6_000

/** How one drain went. */
interface Turn {
  readonly server: string
  /** The server's own count at the moment of the verdict. */
  readonly atVerdict: number
  /** From its last response to the verdict, in milliseconds. */
  readonly waited: number
  readonly report: DrainReport
}

const asked = options()
// A signal ends the servers and the balancer too.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
process.exitCode = asked.fleet ? await runFleet() : await run(asked.fake)

function options(): Readonly<{ fake: boolean; fleet: boolean; json: boolean; report?: string }> {
  const flag = { type: 'boolean', default: false } as const
  try {
    const args = process.argv.slice(2).filter((word) => word !== '--')
    const { values } = parseArgs({
      args,
      options: { fake: flag, fleet: flag, json: flag, report: { type: 'string' } },
    })
    if (!values.fleet || args.length === 1) return values
    throw new Error('--fleet takes no other option')
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    console.error(`${words}; there is --fleet, or --fake, --json and --report FILE`)
    process.exit(2)
  }
}

async function run(onFake: boolean): Promise<number> {
  const screen = new Screen()
  await using stack = new AsyncDisposableStack()
  const backends: Backend[] = []
  for (const name of NAMES) {
    const backend = stack.use(new Backend(name, await freePort()))
    await backend.start()
    backends.push(backend)
  }
  const balancer = stack.use(await startBalancer(onFake, backends, screen))
  screen.say(
    `${balancer.engine === 'haproxy' ? 'HAProxy' : 'The fake of HAProxy'} ${balancer.version}, three servers, maxconn and persistence on`,
  )
  const lb = stack.use(haproxyRuntime({ socket: balancer.socket, master: balancer.master }))
  await serving(lb)

  const recorder = asked.report === undefined ? undefined : stack.use(record(lb))
  const clients = new Clients(balancer.port)
  clients.browse(24)
  const view = new AbortController()
  const watching = watchServers(lb, screen, clients, view.signal)
  const turns: Turn[] = []
  let failure: string | undefined
  try {
    for (const [i, backend] of backends.entries()) {
      const next = backends[(i + 1) % backends.length]
      const reload = i === 1 && next ? { balancer, holder: next } : undefined
      turns.push(await takeOut(lb, backend, clients, { screen, recorder }, reload))
    }
    while (clients.requests < AT_LEAST + 100) await pause(50)
  } catch (error) {
    failure = explain(error)
  } finally {
    await clients.stop()
    view.abort()
    await watching
  }
  if (asked.report !== undefined && recorder !== undefined) {
    writeReport(asked.report, recorder, balancer, turns)
    screen.say(`drawn to ${asked.report}`)
  }
  return summary(balancer, clients, turns, screen, failure)
}

/** Records every look at the servers, also while they are not drained. */
function record(lb: DrainableProvider): TimelineRecorder & AsyncDisposable {
  const recorder = new TimelineRecorder()
  const view = watch(
    lb,
    { pool: 'web' },
    { onEvent: (event) => event.type === 'load' && recorder.event(event) },
  )
  return Object.assign(recorder, {
    [Symbol.asyncDispose]: () => Promise.resolve(view[Symbol.asyncDispose]()),
  })
}

function writeReport(
  path: string,
  recorder: TimelineRecorder,
  { engine, version: of }: Balancer,
  turns: readonly Turn[],
): void {
  const name = engine === 'haproxy' ? `HAProxy ${of}` : 'the fake of HAProxy'
  const timeline = recorder.timeline()
  const members = turns.flatMap(({ report }) => report.members)
  const elapsed = turns.reduce((sum, { report }) => sum + report.elapsed, 0)
  const result = {
    verb: 'drain',
    exitCode: 0,
    changed: true,
    balancer: { name, instance: '' },
    report: { outcome: 'idle', members, elapsed },
  } as const
  writeFileSync(
    path,
    path.endsWith('.svg')
      ? pictureFile(timeline, `Three servers of ${name}, taken out one after another under load`)
      : page(timeline, result, { verb: 'drain', version, now: Date.now() }),
  )
}

async function startBalancer(
  onFake: boolean,
  backends: readonly Backend[],
  screen: Screen,
): Promise<Balancer> {
  if (onFake) return startStandIn(backends)
  const engine = findEngine((text) => screen.say(text))
  if (engine) return startHaproxy(engine, backends)
  screen.say('No HAProxy is available here: using the fake that comes with this package')
  return startStandIn(backends)
}

/** All three servers have passed a check. */
async function serving(lb: DrainableProvider): Promise<void> {
  await ready(lb, { pool: 'web' }, { waitHealthy: '15s' })
}

/** Drains one loaded server, kills it at the verdict, starts another in its place, and brings that one back. */
async function takeOut(
  lb: DrainableProvider,
  backend: Backend,
  clients: Clients,
  {
    screen,
    recorder,
  }: { readonly screen: Screen; readonly recorder: TimelineRecorder | undefined },
  reload: { readonly balancer: Balancer; readonly holder: Backend } | undefined,
): Promise<Turn> {
  const { name } = backend
  const ref = { pool: 'web', member: name }
  const work = [clients.upgraded(name, 2_200)]
  for (let i = 0; i < SLOW; i++) work.push(clients.slow(name, 900 + 60 * i))
  clients.visit(name)
  // A connection to another server keeps the old process alive for longer than this drain. It is upgraded: one that
  // could bring another request would be waited for, because through the old process it could come to this server.
  if (reload) work.push(clients.upgraded(reload.holder.name, OUTLASTS))
  const load = await untilBusy(lb, name)
  screen.say(
    `${name}: drain begins with ${load.active} in flight (one upgraded) and ${load.queued} queued`,
  )

  recorder?.mark(Date.now(), 'drain', ref)
  const reloaded =
    reload && reloadSoon(reload.balancer, screen).then(() => recorder?.mark(Date.now(), 'reload'))
  let end: Promise<Count> | undefined
  let idleAt = 0
  const onEvent = (event: DrainEvent): void => {
    // The looks are those of the watch, which sees every server all the time.
    if (event.type !== 'load') recorder?.event(event)
    if (event.type === 'overruled') screen.say(`${name}: the reload lost the drain, it is put back`)
    if (event.type === 'fault') screen.say(`${name}: ${event.error.message}`)
    if (event.type !== 'idle' || end) return
    // No grace and no goodbye: if anything were left on it, a client would see it die.
    idleAt = Date.now()
    recorder?.mark(Date.now(), 'killed', ref)
    end = backend.end()
  }
  const [report, count] = await drain(lb, ref, { timeout: '30s', onEvent }, async (done) => {
    const counted = await (end ?? backend.end())
    await backend.start()
    return [done, counted] as const
  })
  const waited = Math.max(0, idleAt - count.lastEndedAt)
  screen.say(
    `${name}: idle ${waited} ms after its last response, killed with ${count.active} in hand, replaced`,
  )
  await reloaded
  const onReady = (event: DrainEvent): void => {
    if (event.type !== 'load') recorder?.event(event)
  }
  await ready(lb, ref, { waitHealthy: '15s', onEvent: onReady })
  recorder?.mark(Date.now(), 'replaced, healthy, ready', ref)
  screen.say(`${name}: healthy, and serving again`)
  await Promise.all(work)
  return { server: name, atVerdict: count.active, waited, report }
}

async function reloadSoon(balancer: Balancer, screen: Screen): Promise<void> {
  await pause(500)
  await balancer.reload()
  screen.say(
    'HAProxy was reloaded in mid-drain: a new worker without the drain, an old one with its connections',
  )
}

/** The server has as much as it takes, and a queue. */
async function untilBusy(
  lb: DrainableProvider,
  name: string,
): Promise<{ active: number; queued: number }> {
  const limit = Date.now() + 10_000
  for (;;) {
    const [reading] = await select(lb, { pool: 'web', member: name })
    const load = reading ? loadOf(reading) : { active: 0, queued: 0 }
    if (load.queued > 0) return load
    if (Date.now() > limit) throw new Error(`${name} does not get busy`)
    await pause(10)
  }
}

function loadOf({ scopes }: Reading): { active: number; queued: number } {
  return {
    active: scopes.reduce((sum, scope) => sum + scope.active, 0),
    queued: scopes.reduce((sum, scope) => sum + scope.queued, 0),
  }
}

/** The live view: what HAProxy holds for each server, over all its workers. */
async function watchServers(
  lb: DrainableProvider,
  screen: Screen,
  clients: Clients,
  signal: AbortSignal,
): Promise<void> {
  if (!screen.isLive) return
  while (!signal.aborted) {
    const readings = await select(lb, { pool: 'web' }).catch(() => [])
    const servers = readings.map((reading) => {
      const old = reading.scopes.filter((s) => s.old === true && s.state !== 'ended').length
      return {
        name: reading.ref.member,
        state: reading.present ? reading.own : 'gone',
        ...loadOf(reading),
        note: old > 0 ? `${old} old worker` : '',
      }
    })
    screen.show(servers, `  ${clients.requests} requests, ${clients.errors.length} errors`)
    await pause(100)
  }
  screen.end()
}

function summary(
  balancer: Balancer,
  clients: Clients,
  turns: readonly Turn[],
  screen: Screen,
  failure: string | undefined,
): number {
  const { requests, errors, resent } = clients
  const [first] = turns
  if (failure !== undefined) screen.say(`\n${failure}`)
  screen.say('')
  screen.say(`${requests} requests, ${errors.length} errors`)
  for (const error of errors.slice(0, 10)) screen.say(`  ${error}`)
  if (resent > 0)
    screen.say(`  ${resent} sent again on a new connection: the old one was closed while idle`)
  for (const { server, waited, atVerdict } of turns) {
    screen.say(
      `${server}: ${waited} ms from its last response to idle; its own count then: ${atVerdict}`,
    )
  }
  const proof = first?.report.members[0]?.proof
  if (first && proof) {
    screen.say(`\nHow we know that ${first.server} was idle: ${proof.text}`)
    if (asked.json) screen.say(JSON.stringify(proof, undefined, 2))
  }
  const busy = turns.some(({ atVerdict }) => atVerdict !== 0)
  const verified = turns.every(({ report }) => report.members.every((m) => m.verifiedIdle))
  const line = {
    ok: errors.length === 0 && !busy && verified && turns.length === NAMES.length,
    engine: balancer.engine,
    version: balancer.version,
    requests,
    errors: errors.length,
    resent,
    drains: turns.length,
    ...(failure !== undefined && { failure }),
    verified,
    backendCounts: turns.map(({ atVerdict }) => atVerdict),
    msFromLastResponseToIdle: turns.map(({ waited }) => waited),
  }
  screen.say(JSON.stringify(line))
  return line.ok ? 0 : 1
}

/** What ended the demo early; a drain that did not come to its end says why. */
function explain(error: unknown): string {
  if (!isDrainableError(error)) return error instanceof Error ? error.message : String(error)
  const whys = error.report?.members.flatMap((member) => member.why) ?? []
  return [`${error.code}: ${error.message}`, ...whys.map(({ text }) => text)].join('; ')
}
