/**
 * What a look costs at 10,000 endpoints: our own CPU, the longest turn of the event loop, and what Envoy's
 * admin API takes for `/clusters` and for `/stats?filter=` alone (which has no counts by endpoint).
 *
 *   npm run bench envoy/large
 */
// Loaded beforehand: what it takes to load is no matter of size.
import 'undici'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { systemClock } from '../../src/provider/clock.js'
import { engines } from '../../test/support/engines.js'
import { startEnvoy, workDir } from '../../test/support/envoy/proxy.js'
import { writeEds } from '../../test/support/envoy/sets.js'
import { keep } from '../support/tables.js'
import { BusyTurns } from './support/busy-turns.js'
import { figures } from './support/figures.js'

const ENDPOINTS = 10_000
const LOOKS = 20
const engine = engines('envoy').at(-1)

if (engine === undefined) console.log('no Envoy to measure with: run "npm run engines"')
else await measure(engine.path)

async function measure(path: string): Promise<void> {
  await using dir = await workDir()
  const file = `${dir.path}/web.json`
  const names = Array.from({ length: ENDPOINTS }, (_, i) => `10.1.${i >> 8}.${i & 255}`)
  const endpoints = names.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }))
  await writeEds(file, [{ cluster_name: 'web', endpoints: [{ lb_endpoints: endpoints }] }])
  await using proxy = await startEnvoy({ path, eds: { file } })
  await using lb = envoy({
    endpoints: fileEndpoints({ cluster: 'web', path: file }),
    admin: [proxy.admin],
  })
  const ref = { pool: 'web', member: `${names[7]}:80` }
  console.log(`Envoy ${engine?.version}, ${ENDPOINTS} endpoints, looks at one member`)
  const turns = monitorEventLoopDelay({ resolution: 1 })
  // Beside others on a machine a turn takes longer than it works.
  const busy = new BusyTurns()
  /** @param isMetered - whether turns are measured: that takes CPU of its own all the time */
  const look = async (
    isMetered: boolean,
  ): Promise<readonly [cpu: number, turn: number, took: number, work: number]> => {
    const [before, begun] = [process.cpuUsage(), performance.now()]
    turns.reset()
    turns.enable()
    if (isMetered) busy.start()
    const { readings } = await lb.observe([ref], {
      signal: AbortSignal.timeout(30_000),
      clock: systemClock,
    })
    const took = performance.now() - begun
    const used = process.cpuUsage(before)
    await new Promise((resolve) => setTimeout(resolve, 5))
    turns.disable()
    const work = busy.stop()
    if (readings[0]?.present !== true) throw new Error('it is not there')
    const { user, system } = used
    return [(user + system) / 1_000, turns.max / 1e6, took, work]
  }
  const [cpu, turn, took, work] = await look(true)
  console.log(
    `  the first look: ${cpu.toFixed(0)} ms CPU, longest turn ${turn.toFixed(1)} ms (${work.toFixed(1)} ms of it work), ${took.toFixed(0)} ms in all`,
  )
  const later: (readonly [cpu: number, turn: number, took: number, work: number])[] = []
  const spent: number[] = []
  for (let i = 0; i < LOOKS; i += 1) {
    later.push(await look(true))
    spent.push((await look(false))[0])
  }
  console.log(`  CPU of a look:    ${figures(spent)}`)
  console.log(`  its longest turn: ${figures(later.map(([, ms]) => ms))}`)
  console.log(`  work in a turn:   ${figures(later.map(([, , , ms]) => ms))}`)
  console.log(`  in all:           ${figures(later.map(([, , ms]) => ms))}`)
  const middle = (index: number): number =>
    Math.round(
      (later.map((each) => each[index] ?? NaN).sort((a, b) => a - b)[LOOKS / 2] ?? NaN) * 10,
    ) / 10
  keep({
    id: 'envoy-large',
    title: `A look at an Envoy with ${ENDPOINTS.toLocaleString('en')} endpoints`,
    about: `${engine?.version ?? ''}, one cluster; one member is asked for. The middle of ${LOOKS} looks.`,
    columns: ['what', 'ms'],
    rows: [
      ['CPU of our process', middle(0)],
      ['its longest turn of the event loop', middle(1)],
      ['in all, with what Envoy takes', middle(2)],
    ],
    notShown:
      'The first look, which also loads what HTTP needs; and the CPU that Envoy itself takes to list its endpoints.',
  })
  for (const query of [
    '/clusters?format=text',
    '/clusters?format=json',
    '/stats?filter=%5Ecluster%5C.web%5C.',
    '/stats?usedonly&filter=%5Ecluster%5C.web%5C.',
  ]) {
    const times: number[] = []
    let size = 0
    for (let i = 0; i < LOOKS; i += 1) {
      const begun = performance.now()
      size = (await proxy.get(query)).length
      times.push(performance.now() - begun)
    }
    console.log(`  ${decodeURIComponent(query)}: ${Math.ceil(size / 1_000)} kB, ${figures(times)}`)
  }
}
