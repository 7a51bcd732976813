/**
 * What a look and a change cost at 10,000 endpoints: our own CPU, the longest turn of the event loop, and what Envoy's
 * admin API takes for `/clusters` and for `/stats?filter=` alone (which has no counts by endpoint).
 *
 *   npm run bench envoy/large
 */
// Loaded beforehand: what it takes to load is no matter of size.
import 'undici'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import type { Change, DrainableProvider, MemberRef } from 'drainable/provider'
import { systemClock } from '../../src/provider/clock.js'
import { engines } from '../../test/support/engines.js'
import { startEnvoy, workDir, type RunningEnvoy } from '../../test/support/envoy/proxy.js'
import { writeEds } from '../../test/support/envoy/sets.js'
import { until } from '../../test/support/wait.js'
import { keep } from '../support/tables.js'
import { BusyTurns } from './support/busy-turns.js'
import { figures } from './support/figures.js'

const ENDPOINTS = 10_000
const ROUNDS = 20
const engine = engines('envoy').at(-1)
const names = Array.from({ length: ENDPOINTS }, (_, i) => `10.1.${i >> 8}.${i & 255}`)
const ref: MemberRef = { pool: 'web', member: `${names[7]}:80` }
const set = {
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: names.map((address) => ({
        endpoint: { address: { socket_address: { address, port_value: 80 } } },
      })),
    },
  ],
}
const turns = monitorEventLoopDelay({ resolution: 1 })
// Beside others on a machine a turn takes longer than it works.
const busy = new BusyTurns()

if (engine === undefined) console.log('no Envoy to measure with: run "npm run engines"')
else {
  console.log(`Envoy ${engine.version}, ${ENDPOINTS} endpoints, one member`)
  await byFile(engine.path)
  await byGrpc(engine.path)
}

async function byFile(path: string): Promise<void> {
  await using dir = await workDir()
  const file = `${dir.path}/web.json`
  await writeEds(file, [set])
  await using proxy = await startEnvoy({ path, eds: { file } })
  const endpoints = fileEndpoints({ cluster: 'web', path: file })
  await using lb = envoy({ endpoints, admin: [proxy.admin] })
  const first = await measured(() => look(lb), true)
  console.log(
    `  the first look: ${first.cpu.toFixed(0)} ms CPU, longest turn ${first.turn.toFixed(1)} ms (${first.work.toFixed(1)} ms of it work), ${first.took.toFixed(0)} ms in all`,
  )
  keepTable(await print('a look', () => look(lb)))
  await printChanges('file', lb)
  await printAdmin(proxy)
}

async function byGrpc(path: string): Promise<void> {
  const sink = grpcEndpoints({ port: 0, initial: [set] })
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  const { port } = await until(() => sink.address, 'a listening sink')
  await using proxy = await startEnvoy({ path, eds: { grpc: port, ads: true } })
  admin.push(proxy.admin)
  await until(() => sink.subscribers?.of('web')[0]?.state === 'acked', 'the first receipt')
  await look(lb)
  await printChanges('gRPC', lb)
}

async function look(lb: DrainableProvider): Promise<void> {
  const { readings } = await lb.observe([ref], context())
  if (readings[0]?.present !== true) throw new Error('it is not there')
}

/** A hold, which asks the proxy before it; then it is put back. */
async function printChanges(sink: string, lb: DrainableProvider): Promise<void> {
  const change = async (one: Change): Promise<void> => {
    const [result] = await lb.apply([one], context())
    if (result?.status !== 'applied') throw new Error(`not applied: ${JSON.stringify(result)}`)
  }
  const hold = (): Promise<void> => change({ kind: 'hold', ref, to: 'drain' })
  const restore = (): Promise<void> =>
    change({ kind: 'restore', ref, expect: 'drain', to: 'ready' })
  await print(`a hold by ${sink}, with its look`, hold, restore)
}

function context() {
  return { signal: AbortSignal.timeout(30_000), clock: systemClock }
}

interface Cost {
  readonly cpu: number
  readonly turn: number
  readonly took: number
  readonly work: number
}

/** @param isMetered - whether the work in a turn is measured: that takes CPU of its own all the time */
async function measured(fn: () => Promise<void>, isMetered: boolean): Promise<Cost> {
  const [before, begun] = [process.cpuUsage(), performance.now()]
  turns.reset()
  turns.enable()
  if (isMetered) busy.start()
  await fn()
  const took = performance.now() - begun
  const { user, system } = process.cpuUsage(before)
  await new Promise((resolve) => setTimeout(resolve, 5))
  turns.disable()
  return { cpu: (user + system) / 1_000, turn: turns.max / 1e6, took, work: busy.stop() }
}

async function print(
  what: string,
  fn: () => Promise<void>,
  undo: () => Promise<void> = () => Promise.resolve(),
): Promise<readonly Cost[]> {
  const metered: Cost[] = []
  const plain: Cost[] = []
  for (let i = 0; i < ROUNDS; i += 1) {
    metered.push(await measured(fn, true))
    await undo()
    plain.push(await measured(fn, false))
    await undo()
  }
  console.log(`  ${what}`)
  console.log(`    CPU:            ${figures(plain.map(({ cpu }) => cpu))}`)
  console.log(`    longest turn:   ${figures(plain.map(({ turn }) => turn))}`)
  console.log(`    work in a turn: ${figures(metered.map(({ work }) => work))}`)
  console.log(`    in all:         ${figures(plain.map(({ took }) => took))}`)
  return plain
}

function keepTable(costs: readonly Cost[]): void {
  const middle = (one: keyof Cost): number => {
    const sorted = costs.map((cost) => cost[one]).sort((a, b) => a - b)
    return Math.round((sorted[Math.floor(ROUNDS / 2)] ?? NaN) * 10) / 10
  }
  keep({
    id: 'envoy-large',
    title: `A look at an Envoy with ${ENDPOINTS.toLocaleString('en')} endpoints`,
    about: `${engine?.version ?? ''}, one cluster; one member is asked for. The middle of ${ROUNDS} looks.`,
    columns: ['what', 'ms'],
    rows: [
      ['CPU of our process', middle('cpu')],
      ['its longest turn of the event loop', middle('turn')],
      ['in all, with what Envoy takes', middle('took')],
    ],
    notShown:
      'The first look, which also loads what HTTP needs; and the CPU that Envoy itself takes to list its endpoints.',
  })
}

async function printAdmin(proxy: RunningEnvoy): Promise<void> {
  for (const query of [
    '/clusters?format=text',
    '/clusters?format=json',
    '/stats?filter=%5Ecluster%5C.web%5C.',
  ]) {
    const times: number[] = []
    let size = 0
    for (let i = 0; i < ROUNDS; i += 1) {
      const begun = performance.now()
      size = (await proxy.get(query)).length
      times.push(performance.now() - begun)
    }
    console.log(`  ${decodeURIComponent(query)}: ${Math.ceil(size / 1_000)} kB, ${figures(times)}`)
  }
}
