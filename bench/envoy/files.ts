/**
 * What the file sink costs: reading a set from JSON and from YAML, and the time from the move of a file to the
 * status in Envoy's admin API (inotify).
 *
 *   npm run bench envoy/files
 */
import { writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import { EdsFile } from '../../src/adapters/envoy/sources/eds-file.js'
import { engines } from '../../test/support/engines.js'
import { startEnvoy, workDir } from '../../test/support/envoy/proxy.js'
import { setOf, writeEds } from '../../test/support/envoy/sets.js'
import { BusyTurns } from './support/busy-turns.js'
import { figures } from './support/figures.js'

const SIZES = [10, 1_000, 10_000]
const ROUNDS = 10
const PORT = 1_024

await using dir = await workDir()
for (const size of SIZES) {
  const ports = Array.from({ length: size }, (_, i) => PORT + i)
  const document = { resources: [setOf(ports)] }
  for (const [kind, text] of [
    ['JSON', JSON.stringify(document)],
    ['YAML', stringify(document)],
  ] as const) {
    const path = `${dir.path}/web-${size}.${kind.toLowerCase()}`
    await writeFile(path, text)
    const took: number[] = []
    const turns: number[] = []
    for (let i = 0; i < (size > 1_000 && kind === 'YAML' ? 1 : ROUNDS); i += 1) {
      const busy = new BusyTurns()
      busy.start()
      const begun = performance.now()
      await new EdsFile('web', path).load()
      took.push(performance.now() - begun)
      // The last turn of the load counts too.
      await new Promise((resolve) => setTimeout(resolve, 2))
      turns.push(busy.stop())
    }
    console.log(`${size} endpoints in ${kind}: ${figures(took)}; longest turn ${figures(turns)}`)
  }
}
const engine = engines('envoy').at(-1)
if (engine === undefined) console.log('no Envoy to measure with: run "npm run engines"')
else for (const size of SIZES) await untilShown(engine.path, size)

async function untilShown(path: string, size: number): Promise<void> {
  const file = `${dir.path}/shown-${size}.json`
  const ports = Array.from({ length: size }, (_, i) => PORT + i)
  await writeEds(file, [setOf(ports)], '0')
  await using proxy = await startEnvoy({ path, eds: { file } })
  const took: number[] = []
  for (let i = 1; i <= ROUNDS; i += 1) {
    const status = i % 2 === 1 ? 'DRAINING' : 'HEALTHY'
    const set = setOf(ports, 'web', (port) => (port === PORT ? { health_status: status } : {}))
    await writeEds(file, [set], String(i))
    const begun = performance.now()
    const shown = `cluster.web.version_text: "${i}"`
    while (!(await proxy.get('/stats?filter=version_text')).includes(shown));
    took.push(performance.now() - begun)
  }
  console.log(`${size} endpoints, from the move to version_text: ${figures(took)}`)
}
