import { rename, writeFile } from 'node:fs/promises'

/** One endpoint set for servers on loopback. */
export function setOf(
  ports: readonly number[],
  cluster = 'web',
  extra: (port: number) => Record<string, unknown> = () => ({}),
): Record<string, unknown> {
  return {
    cluster_name: cluster,
    endpoints: [
      {
        lb_endpoints: ports.map((port) => ({
          endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
          ...extra(port),
        })),
      },
    ],
  }
}

/** Writes an EDS file as a deployment would: beside it, then moved there. */
export async function writeEds(
  path: string,
  sets: readonly unknown[],
  version = '1',
): Promise<void> {
  const resources = sets.map((set) => ({
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    ...(set as object),
  }))
  await writeFile(`${path}.tmp`, JSON.stringify({ version_info: version, resources }))
  await rename(`${path}.tmp`, path)
}
