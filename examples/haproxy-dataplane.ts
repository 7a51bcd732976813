/**
 * Drains a server over the HAProxy Data Plane API, does its work on it, and makes it ready again,
 * while another client reloads HAProxy in the middle: the drain is put back, and the replaced process is
 * waited for as long as HAProxy's configuration lets it live.
 *
 * The API is the stand-in of `drainable/testing/haproxy-dataplane`; give DATAPLANE_URL,
 * DATAPLANE_USER, DATAPLANE_PASSWORD, and BACKEND and SERVER, to drain on a real one.
 */
import { drain, ready, type DrainEvent } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { startFake } from 'drainable/testing/haproxy-dataplane'

const { DATAPLANE_URL, DATAPLANE_USER = 'admin', DATAPLANE_PASSWORD = '' } = process.env
const { BACKEND = 'web', SERVER = 'web1' } = process.env

const fake =
  DATAPLANE_URL === undefined
    ? await startFake({
        config: `global
  hard-stop-after 3s
backend web
  server web1 127.0.0.1:8001 check inter 1s weight 100
  server web2 127.0.0.1:8002 check inter 1s weight 100
`,
        version: '3.2',
      })
    : undefined

await using lb = haproxyDataplane({
  url: fake?.url ?? DATAPLANE_URL ?? '',
  username: DATAPLANE_USER,
  password: () => (fake === undefined ? DATAPLANE_PASSWORD : 'secret'),
  // The hard-stop-after that its processes were started with: known of the stand-in alone.
  oldWorkers: fake === undefined ? 'wait' : { within: '3s' },
})

try {
  const member = { pool: BACKEND, member: SERVER }
  const finish = await fake?.occupy(member)
  if (fake !== undefined) {
    setTimeout(() => void finish?.(), 500) // the request in flight ends
    setTimeout(() => void fake.reload(), 1_000) // a certificate is renewed, HAProxy is reloaded
  }

  let last = ''
  const onEvent = (event: DrainEvent): void => {
    if (event.type !== 'load') return
    const text = event.why[0]?.text ?? 'nothing left'
    if (text !== last) console.log(text)
    last = text
  }
  await drain(lb, member, { timeout: '30s', onEvent }, (report) => {
    for (const { outcome, verifiedIdle, proof, why } of report.members) {
      console.log(`${outcome}, ${verifiedIdle ? 'proved' : 'not proved'}`)
      for (const text of proof === undefined ? why.map((w) => w.text) : [proof.text]) {
        console.log(`  ${text}`)
      }
    }
    console.log(`${SERVER} can be worked on`)
    return Promise.resolve()
  })
  const { members } = await ready(lb, member, { waitHealthy: '30s' })
  console.log(`${SERVER} is back, ${members[0]?.health ?? 'unknown'}`)
} finally {
  await fake?.close()
}
