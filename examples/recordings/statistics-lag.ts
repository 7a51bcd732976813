/**
 * Records how old the statistics of a BIG-IP are: asks for those of one pool four times a second, and prints each moment at
 * which a counter of a member moved. Under steady traffic the steps between these moments are what the statistics lag.
 *
 * Let a client send a request to the pool every 100 ms. The recording asks by GET alone and changes nothing. RECORD_URL,
 * RECORD_USER, RECORD_PASSWORD and RECORD_CA or RECORD_PIN name the device, RECORD_POOL the pool's full path, RECORD_SECONDS
 * how long (60). Without a URL it records the stand-in.
 */
import { startFake } from 'drainable/testing/f5-bigip'
import { device, figure, Recorder } from './support/recorder.ts'

const { RECORD_POOL = '/Common/web' } = process.env
const COUNTERS = ['serverside.totConns', 'totRequests', 'serverside.curConns', 'connq.depth']

type Entries = Readonly<Record<string, Readonly<Record<string, unknown>>>>

await using at = await device(() => startFake())
await using recorder = new Recorder(at, 'basic', 60)

const segment = encodeURIComponent(RECORD_POOL.replaceAll('/', '~'))
const path = `/mgmt/tm/ltm/pool/${segment}/members/stats`
const before = new Map<string, string>()

await recorder.every(250, async () => {
  const asked = recorder.at
  const { status, text } = await recorder.get(path)
  if (status !== 200) {
    recorder.say({ at: asked, status })
    return
  }
  const { entries = {} } = JSON.parse(text) as { readonly entries?: Entries }
  for (const [key, { nestedStats }] of Object.entries(entries)) {
    const { entries: row = {} } = Object(nestedStats) as { readonly entries?: Entries }
    const figures = COUNTERS.map((name) => figure(row[name]?.['value']))
    const shown = figures.join(' ')
    if (before.get(key) === shown) continue
    before.set(key, shown)
    const values = Object.fromEntries(COUNTERS.map((name, i) => [name, figures[i] ?? null]))
    const member = recorder.alias('member', key)
    recorder.say({ at: asked, answered: recorder.at, member, ...values })
  }
})
