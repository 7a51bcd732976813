import { readFile, stat } from 'node:fs/promises'
import { list, object, readJsonSet } from './assignment.js'
import type { Cluster } from './cluster.js'
import { openStream, type GrpcStream } from './grpc-stream.js'
import type { FakeEds, Settings } from './options.js'
import {
  CLA,
  readDelta,
  readInterval,
  readSotw,
  writeDelta,
  writeLoads,
  writeLoadsBegin,
  writeSotw,
  type Response,
} from './wire.js'

const AGAIN = 50
const EDS = '/envoy.service.endpoint.v3.EndpointDiscoveryService'
const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const LRS = '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats'

/** Something that runs until it is stopped. */
export type Stop = () => void

/** Takes endpoint sets from where the options say, as Envoy does. */
export function follow(eds: FakeEds, settings: Settings, clusters: readonly Cluster[]): Stop {
  if ('file' in eds) return followFile(eds.file, clusters)
  if ('files' in eds) {
    const stops = clusters.flatMap((cluster) => {
      const file = eds.files[cluster.name]
      return file === undefined ? [] : [followFile(file, [cluster])]
    })
    return () => stops.forEach((stop) => stop())
  }
  if ('rest' in eds) return followRest(eds.rest, eds.interval ?? AGAIN, settings, clusters)
  const { grpc, ads = false, delta = false } = eds
  const path = `${ads ? ADS : EDS}/${delta ? 'Delta' : 'Stream'}${ads ? 'AggregatedResources' : 'Endpoints'}`
  const groups = ads ? [clusters] : clusters.map((cluster) => [cluster])
  const stops = groups.map((group) => followGrpc(grpc, path, delta, settings, group))
  return () => stops.forEach((stop) => stop())
}

/** Only a file that is moved onto the path is noticed, so only a new inode is read. */
function followFile(path: string, clusters: readonly Cluster[]): Stop {
  let inode = 0
  const look = async (): Promise<void> => {
    const found = await stat(path).catch(() => undefined)
    if (found === undefined || found.ino === inode) return
    inode = found.ino
    takeFile(await readFile(path, 'utf8'), clusters)
  }
  return every(5, look)
}

function takeFile(text: string, clusters: readonly Cluster[]): void {
  let document: Readonly<Record<string, unknown>>
  try {
    document = object(JSON.parse(text))
  } catch {
    for (const cluster of clusters) cluster.counters.failure++
    return
  }
  // A file with several sets is refused as a whole, by each cluster that reads it.
  if (list(document['resources']).length > 1) {
    for (const cluster of clusters) cluster.refuse()
    return
  }
  takeDocument(document, clusters)
}

function takeDocument(
  document: Readonly<Record<string, unknown>>,
  clusters: readonly Cluster[],
): void {
  const version = document['version_info'] ?? document['versionInfo']
  const sets = list(document['resources']).map(readJsonSet)
  for (const cluster of clusters) {
    const set = sets.find(({ service }) => service === cluster.service) ?? sets[0]
    if (set !== undefined) cluster.update(set, typeof version === 'string' ? version : '')
  }
}

function followRest(
  url: string,
  interval: number,
  settings: Settings,
  clusters: readonly Cluster[],
): Stop {
  const poll = async (): Promise<void> => {
    for (const cluster of clusters) {
      const [major_number, minor_number, patch] = settings.version
      const reply = await fetch(new URL('/v3/discovery:endpoints', url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        signal: AbortSignal.timeout(2_000),
        body: JSON.stringify({
          ...(cluster.version === '' ? {} : { version_info: cluster.version }),
          node: {
            id: settings.node,
            user_agent_name: 'envoy',
            user_agent_build_version: { version: { major_number, minor_number, patch } },
          },
          resource_names: [cluster.service],
          type_url: CLA,
        }),
      })
      if (reply.status === 200) takeDocument(object(await reply.json()), [cluster])
    }
  }
  return every(interval, poll)
}

function followGrpc(
  url: string,
  path: string,
  delta: boolean,
  settings: Settings,
  clusters: readonly Cluster[],
): Stop {
  const names = clusters.map(({ service }) => service)
  const versions = new Map<string, string>()
  let version = ''
  return reconnecting((onEnd) => {
    const stream: GrpcStream = openStream(
      url,
      path,
      (bytes) => {
        const response = delta ? readDelta(bytes) : readSotw(bytes)
        const error = take(response, clusters, versions)
        if (error === undefined) version = response.version
        const answer = { nonce: response.nonce, error }
        stream.send(
          delta
            ? writeDelta(settings, [], new Map(), answer)
            : writeSotw(settings, names, version, answer),
        )
      },
      onEnd,
    )
    stream.send(delta ? writeDelta(settings, names, versions) : writeSotw(settings, names, version))
    return stream
  })
}

/** One bad resource refuses the response. */
function take(
  response: Response,
  clusters: readonly Cluster[],
  versions: Map<string, string>,
): string | undefined {
  for (const { set, version } of response.resources) {
    for (const cluster of clusters.filter(({ service }) => service === set.service)) {
      const update = cluster.update(set, version)
      if (!update.ok) return update.error
    }
    versions.set(set.service, version)
  }
  return undefined
}

/** Sends load reports at the interval that the server asks for. */
export function report(url: string, settings: Settings, clusters: readonly Cluster[]): Stop {
  return reconnecting((onEnd) => {
    const before = new Map<string, number>()
    let last = performance.now()
    let timer: NodeJS.Timeout | undefined
    const send = (): void => {
      const now = performance.now()
      const issued = new Map<string, number>()
      for (const cluster of clusters) {
        for (const host of cluster.hosts.values()) {
          const key = `${cluster.name} ${host.name}`
          issued.set(key, host.requests - (before.get(key) ?? 0))
          before.set(key, host.requests)
        }
      }
      stream.send(writeLoads(settings, clusters, issued, now - last))
      last = now
    }
    const stream = openStream(
      url,
      LRS,
      (bytes) => {
        clearInterval(timer)
        timer = setInterval(send, Math.max(20, readInterval(bytes))).unref()
      },
      () => {
        clearInterval(timer)
        onEnd()
      },
    )
    stream.send(writeLoadsBegin(settings))
    return stream
  })
}

function reconnecting(open: (onEnd: () => void) => GrpcStream): Stop {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let stream: GrpcStream | undefined
  const begin = (): void => {
    stream = open(() => {
      if (!stopped) timer = setTimeout(begin, AGAIN)
    })
  }
  begin()
  return () => {
    stopped = true
    clearTimeout(timer)
    stream?.close()
  }
}

function every(ms: number, fn: () => Promise<void>): Stop {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  const run = (): void => {
    void fn()
      .catch(() => undefined)
      .then(() => {
        if (!stopped) timer = setTimeout(run, ms)
      })
  }
  run()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
