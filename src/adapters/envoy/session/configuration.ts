/** What one proxy is told to do: its clusters by `/config_dump`, and its runtime. */
import { isAtLeast } from '../../../kit/version.js'
import type { AdminLink } from '../../../kit/envoy/admin.js'
import type { ServerInfo } from '../../../kit/envoy/answers.js'
import { isSwitchedOff, runtimeThreshold } from '../codec/admin.js'
import { parseClusters, type ClusterConfig, type OtherCluster } from '../codec/config-dump.js'
import { readBusy } from './stats.js'

/** The clusters of one proxy. */
export interface ProxyClusters {
  /** EDS clusters by cluster name. */
  readonly configs: ReadonlyMap<string, ClusterConfig>
  /** Clusters that are not fed by EDS. */
  readonly others: readonly OtherCluster[]
}

/** What its version and its runtime say. */
export interface ProxyRuntime {
  /** Changes of health take effect with the acknowledgement, not a merge window later. */
  readonly immediate: boolean
  /** Of all clusters, where the runtime sets it; percent. */
  readonly panicThreshold: number | undefined
}

export async function readConfigs(link: AdminLink, from: string): Promise<ProxyClusters> {
  const configs: ClusterConfig[] = []
  const others: OtherCluster[] = []
  for (const kind of ['static_clusters', 'dynamic_active_clusters']) {
    const text = await link.get(`/config_dump?resource=${kind}`)
    const found = parseClusters(text, from)
    configs.push(...found.eds)
    others.push(...found.others)
  }
  return { configs: new Map(configs.map((config) => [config.cluster, config])), others }
}

/** What the runtime sets in place of the configuration. */
export async function readRuntime(
  { version }: ServerInfo,
  link: AdminLink,
  from: string,
): Promise<ProxyRuntime> {
  const text = await link.allowed('/runtime')
  const isOff = text !== undefined && isSwitchedOff(text, 'enable_batch_aware_update', from)
  return {
    immediate: isAtLeast(version, 1, 40) && !isOff,
    panicThreshold: text === undefined ? undefined : runtimeThreshold(text, from),
  }
}

/** Clusters that have work and are in no configuration: CDS removed them. By what their statistics go by. */
export async function readUnconfigured(
  { configs, others }: ProxyClusters,
  link: AdminLink,
  from: string,
): Promise<readonly string[]> {
  const known = new Set([...configs.values(), ...others].map(({ stat }) => stat))
  return (await readBusy(link, from)).filter((stat) => !known.has(stat))
}
