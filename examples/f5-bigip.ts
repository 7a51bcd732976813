/**
 * Takes a pool member of a BIG-IP device group out and puts it back while clients go on asking, one of them
 * with persistence, and says what came of every request.
 *
 * The group is the stand-in of `drainable/testing/f5-bigip`, which forwards to two real HTTP servers
 * started here. Give BIGIP_URL (several with commas), BIGIP_USER, BIGIP_PASSWORD, BIGIP_POOL and
 * BIGIP_MEMBER to drain a member of a real one.
 */
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { drain, ready } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake } from 'drainable/testing/f5-bigip'

const { BIGIP_URL, BIGIP_USER = 'admin', BIGIP_PASSWORD = '' } = process.env
const { BIGIP_POOL = '/Common/web', BIGIP_MEMBER = '/Common/10.0.0.1:80' } = process.env
const member = { pool: BIGIP_POOL, member: BIGIP_MEMBER }

if (BIGIP_URL === undefined) await onTheStandIn()
else {
  await using lb = f5Bigip({
    url: BIGIP_URL.split(','),
    username: BIGIP_USER,
    password: () => BIGIP_PASSWORD,
  })
  await maintain(lb, member)
}

/** Drains, does the work, puts back. */
async function maintain(lb: ReturnType<typeof f5Bigip>, ref: typeof member): Promise<void> {
  const policy = { timeout: '5m', escalateAfter: '2s', keepReady: 1 } as const
  await drain(lb, ref, policy, (report) => {
    const [one] = report.members
    console.log(`${ref.member}: ${report.outcome}, sealed: ${String(one?.sealed)}`)
    console.log(one?.proof?.text ?? 'no proof')
    console.log('... here the server is patched ...')
    return Promise.resolve()
  })
  await ready(lb, ref, { waitHealthy: '60s' })
  console.log(`${ref.member}: in service again`)
}

async function onTheStandIn(): Promise<void> {
  const servers = [await serve('one'), await serve('two')]
  const fake = await startFake({
    units: 2,
    pools: {
      web: servers.map(({ to }, i) => ({ name: `10.0.0.${i + 1}:80`, to })),
    },
  })
  const virtual = await fake.virtual('web', { persist: true })
  const lb = f5Bigip({
    url: fake.urls,
    username: fake.username,
    password: fake.password,
    tls: { ca: fake.ca },
    // the stand-in counts at once; a device needs the defaults of 4 s and 2 s
    freshness: '200ms',
    minInterval: '100ms',
  })
  const tally = { good: 0, failed: 0 }
  const over = new AbortController()
  const clients = ask(virtual.port, tally, over.signal)
  try {
    await maintain(lb, member)
  } finally {
    over.abort()
    await clients
    await lb.close()
    await fake.close()
    for (const { server } of servers) server.close()
  }
  console.log(`${tally.good} requests answered, ${tally.failed} failed`)
  if (tally.failed > 0) process.exitCode = 1
}

/** A server that takes 50 ms for an answer. */
async function serve(name: string): Promise<{ readonly server: Server; readonly to: string }> {
  const server = createServer((_request, response) => {
    setTimeout(() => response.end(name), 50)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, to: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** One request after the other, each on a connection of its own. */
async function ask(
  port: number,
  tally: { good: number; failed: number },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const good = await new Promise<boolean>((resolve) => {
      get({ port, host: '127.0.0.1', agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode === 200))
      }).on('error', () => resolve(false))
    })
    if (good) tally.good += 1
    else tally.failed += 1
  }
}
