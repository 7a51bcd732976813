/** Objects of a cluster, as its controllers write them. */
export const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'
export const SERVICES = '/api/v1/namespaces/shop/services'
export const NODES = '/api/v1/nodes'

/** The endpoints of a slice by address: `TTF` for ready, serving, terminating; `@n1` for a node other than n0. */
export function slice(
  endpoints: Readonly<Record<string, string>>,
  { of = 'web', name = undefined as string | undefined, port = 8080 } = {},
) {
  return {
    metadata: {
      name: name ?? `${of}-x1`,
      labels: {
        'kubernetes.io/service-name': of,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port, protocol: 'TCP' }],
    endpoints: Object.entries(endpoints).map(([address, said]) => {
      const [conditions = '', node = 'n0'] = said.split('@')
      const [ready, serving, terminating] = [0, 1, 2].map((i) => conditions[i] === 'T')
      return {
        addresses: [address],
        conditions: { ready, serving, terminating },
        nodeName: node,
        targetRef: { kind: 'Pod', name: `p-${address.replaceAll('.', '-')}`, uid: `u-${address}` },
      }
    }),
  }
}

export function service(name = 'web', selector: object | null = { app: name }) {
  return { metadata: { name }, spec: { selector, ports: [{ name: 'http', port: 80 }] } }
}

export function node(name: string, ...taints: readonly string[]) {
  return {
    metadata: { name },
    spec: { taints: taints.map((key) => ({ key, effect: 'NoSchedule' })) },
    status: { conditions: [{ type: 'Ready', status: 'True' }], images: [{ names: ['big'] }] },
  }
}
