/**
 * Takes an endpoint out of two Envoys in the middle of a slow request, and puts it back.
 *
 * The Envoys are the stand-ins of `drainable/testing/envoy`, and this program is their xDS server.
 * Give EDS_FILE and ADMIN (and POOL, MEMBER) to drain an endpoint of a real one that reads its
 * endpoints from a file:
 *
 *   EDS_FILE=/etc/envoy/eds/web.json ADMIN=http://127.0.0.1:9901 MEMBER=10.0.0.1:8080 \
 *     npm run example envoy
 */
import { drain, ready } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { startFake } from 'drainable/testing/envoy'

const { EDS_FILE, ADMIN = 'http://127.0.0.1:9901', POOL = 'web', MEMBER } = process.env

if (EDS_FILE === undefined) await onStandIns()
else {
  await using lb = envoy({
    endpoints: fileEndpoints({ cluster: POOL, path: EDS_FILE }),
    admin: ADMIN.split(','),
  })
  await deploy(lb, { pool: POOL, member: MEMBER ?? '127.0.0.1:8080' })
}

/** Drains, does the work, puts back. */
async function deploy(
  lb: ReturnType<typeof envoy>,
  member: { pool: string; member: string },
): Promise<void> {
  let shown = ''
  await drain(
    lb,
    member,
    {
      timeout: '2m',
      onEvent: (event) => {
        const text = event.type === 'load' ? (event.why[0]?.text ?? '') : event.type
        if (text !== shown) console.log((shown = text))
      },
    },
    (report) => {
      console.log(report.members[0]?.proof?.text ?? 'no proof')
      console.log('... here the new release is installed ...')
      return Promise.resolve()
    },
  )
  await ready(lb, member)
  console.log(`${member.member}: in service again`)
}

async function onStandIns(): Promise<void> {
  const sockets = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 8080 } } },
  }))
  const sink = grpcEndpoints({
    port: 0,
    initial: [{ cluster_name: 'web', endpoints: [{ lb_endpoints: sockets }] }],
  })
  const proxies: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(proxies), expect: 2 })
  await sink.open?.({ held: () => Promise.resolve([]) })

  const grpc = `http://127.0.0.1:${sink.address?.port ?? 0}`
  await using one = await startFake({ pools: { web: [] }, node: 'one', eds: { grpc, ads: true } })
  await using two = await startFake({ pools: { web: [] }, node: 'two', eds: { grpc, delta: true } })
  proxies.push(one.url, two.url)

  const member = { pool: 'web', member: '10.0.0.1:8080' }
  const end = await two.occupy(member)
  setTimeout(() => void end(), 1_500)
  await deploy(lb, member)
  console.log(
    'both proxies:',
    (sink.subscribers?.of('web') ?? []).map(({ node, state }) => `${node} ${state}`).join(', '),
  )
}
