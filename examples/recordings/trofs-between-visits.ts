/**
 * Records what a Citrix ADC says of a service group member while it goes out of service, once a second: whether it stays in
 * TROFS between two visits of a client with a persistence entry, and what its counters do meanwhile.
 *
 * Begin the recording, disable the member yourself (`disable service <...> -graceFul YES`), and let one client with a
 * persistence entry come every half minute. The recording itself asks by GET alone and changes nothing.
 *
 * RECORD_URL, RECORD_USER, RECORD_PASSWORD and RECORD_CA or RECORD_PIN name the appliance, RECORD_POOL the service group,
 * RECORD_SERVER and RECORD_PORT the member, RECORD_SECONDS how long (600). Without a URL it records the stand-in.
 */
import { startFake } from 'drainable/testing/citrix-adc'
import { device, figure, Recorder, word } from './support/recorder.ts'

const { RECORD_POOL = 'web', RECORD_SERVER = 'web1', RECORD_PORT = '80' } = process.env

await using at = await device(() => startFake({ pools: { web: ['web1:80', 'web2:80'] } }))
await using recorder = new Recorder(at, 'nitro', 600)

const name = encodeURIComponent(encodeURIComponent(RECORD_POOL))
const BINDING = 'servicegroup_servicegroupmember_binding'
const state = `/nitro/v1/config/${BINDING}/${name}`
const args = `servicegroupname:${encodeURIComponent(RECORD_POOL)},servername:${encodeURIComponent(RECORD_SERVER)},port:${RECORD_PORT}`
const stat = `/nitro/v1/stat/servicegroupmember?args=${args}`

await recorder.every(1_000, async () => {
  const members = await recorder.rows(state, BINDING)
  const [own] = members.filter(
    (row) => row['servername'] === RECORD_SERVER && String(row['port']) === RECORD_PORT,
  )
  const [counts = {}] = await recorder.rows(stat, 'servicegroupmember')
  recorder.say({
    at: recorder.at,
    svrstate: word(own?.['svrstate']),
    state: word(own?.['state']),
    graceful: word(own?.['graceful']),
    clients: figure(counts['curclntconnections']),
    established: figure(counts['svrestablishedconn']),
    reuse: figure(counts['curreusepool']),
    surge: figure(counts['surgecount']),
    requests: figure(counts['totalrequests']),
  })
})
