/**
 * Records what a real Kubernetes control plane says while endpoints come and go, for the example and its tests.
 *
 *     npm run engines -- kube                                # once: builds the control plane
 *     node scripts/endpoint-timelines/main.ts                # writes examples/endpoints/*.json
 *     node scripts/endpoint-timelines/main.ts --check        # records again and compares what the slices said
 *
 * Each timeline is a recording of its own, from an empty API server.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { format } from 'prettier'
import { readEngines } from '../engines/manifest.ts'
import { Cluster, type Frame } from './cluster.ts'
import { startControlPlane } from './control-plane.ts'
import { scenarios, type Scenario } from './scenarios.ts'

/** What is written: one file per scenario. */
export interface Timeline {
  readonly recordedFrom: string
  readonly title: string
  readonly frames: readonly Frame[]
}

const folder = new URL('../../examples/endpoints/', import.meta.url)

async function record(scenario: Scenario, program: string): Promise<Timeline> {
  await using plane = await startControlPlane(program)
  await using cluster = await Cluster.open(plane)
  await scenario.prepare(cluster)
  await cluster.wait(300) // what preparing caused has been seen by then, so that it is not in the recording
  cluster.start()
  await scenario.run(cluster)
  const recordedFrom = `kube-apiserver ${plane.version} with the upstream EndpointSlice controller`
  return { recordedFrom, title: scenario.title, frames: cluster.frames }
}

/**
 * The same, once more where the control plane stood still: its controllers now and then miss a change
 * until their next resync, which says nothing about the recording.
 */
async function recordPatiently(scenario: Scenario, program: string): Promise<Timeline> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await record(scenario, program)
    } catch (error) {
      if (attempt === 3) throw error
      console.log(`${scenario.name}: ${String(error)}, recorded again`)
    }
  }
}

/**
 * The conditions of each address, in the order they were seen, and those of the nodes: what must be the same in every
 * recording. Each by itself, because they come by two watches.
 */
function story(timeline: Timeline): readonly string[] {
  return [...storyOfSlices(timeline), ...storyOfNodes(timeline)]
}

function storyOfNodes({ frames }: Timeline): string[] {
  const states = frames.map(({ nodes }) =>
    nodes
      .map(({ metadata, spec, status }) => {
        const { conditions = [] } = (status ?? {}) as { conditions?: NodeCondition[] }
        const said = conditions.map(({ type, status: is }) => `${type}=${is}`).toSorted()
        return `${metadata.name} ${said.join()} ${JSON.stringify(spec)}`
      })
      .toSorted()
      .join('; '),
  )
  return states.filter((state, i) => state !== states[i - 1])
}

interface NodeCondition {
  readonly type: string
  readonly status: string
}

function storyOfSlices({ frames }: Timeline): string[] {
  const states = frames.map(({ slices }) => {
    const endpoints = slices.flatMap((slice) => (slice.endpoints ?? []) as SliceEndpoint[])
    return endpoints
      .map(({ addresses, conditions }) => `${addresses.join()} ${JSON.stringify(conditions)}`)
      .toSorted()
      .join('; ')
  })
  return states.filter((state, i) => state !== states[i - 1])
}

interface SliceEndpoint {
  readonly addresses: readonly string[]
  readonly conditions: Readonly<Record<string, boolean>>
}

const check = process.argv.includes('--check')
const [kube] = readEngines('kube')
if (kube === undefined) {
  console.error('there is no control plane: build it with npm run engines -- kube')
  process.exit(1)
}
mkdirSync(folder, { recursive: true })
for (const scenario of scenarios) {
  const timeline = await recordPatiently(scenario, kube.path)
  const path = new URL(`${scenario.name}.json`, folder)
  const length = `${timeline.frames.length} frames, ${story(timeline).length} states of slices and nodes`
  if (!check) {
    writeFileSync(path, await format(JSON.stringify(timeline), { parser: 'json', printWidth: 100 }))
    console.log(`${scenario.name}: ${length}`)
    continue
  }
  const recorded = JSON.parse(readFileSync(path, 'utf8')) as Timeline
  const same = JSON.stringify(story(recorded)) === JSON.stringify(story(timeline))
  console.log(`${scenario.name}: ${length}, ${same ? 'as recorded' : 'NOT as recorded'}`)
  if (!same) process.exitCode = 1
}
