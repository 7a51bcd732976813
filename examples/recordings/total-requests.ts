/**
 * Records in which form of a Citrix ADC's statistics service group members have `totalrequests`: in the nested form (below
 * their group), in the single form, in both, and whether the two agree.
 *
 * It asks by GET alone and changes nothing. RECORD_URL, RECORD_USER, RECORD_PASSWORD and RECORD_CA or RECORD_PIN name
 * the appliance, RECORD_POOL one service group (default: the first ten). Without a URL it records the stand-in.
 */
import { startFake } from 'drainable/testing/citrix-adc'
import { device, figure, Recorder, word } from './support/recorder.ts'

const { RECORD_POOL } = process.env
const GROUPS = 10

await using at = await device(() => startFake({ pools: { web: ['web1:80', 'web2:80'] } }))
await using recorder = new Recorder(at, 'nitro', 1)

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const once = encodeURIComponent
const twice = (name: string): string => once(once(name))

const listed = await recorder.rows('/nitro/v1/config/servicegroup', 'servicegroup')
const groups = listed.map((row) => text(row['servicegroupname']))
const chosen = RECORD_POOL === undefined ? groups.slice(0, GROUPS) : [RECORD_POOL]

for (const group of chosen) {
  const path = `/nitro/v1/stat/servicegroup/${twice(group)}?statbindings=yes`
  const [whole = {}] = await recorder.rows(path, 'servicegroup')
  const nested = [whole['servicegroupmember'] ?? []].flat() as Readonly<Record<string, unknown>>[]
  for (const member of nested) {
    const server = text(member['servicegroupname']).split('?')[1] ?? ''
    const port = figure(member['primaryport']) ?? ''
    const args = `servicegroupname:${once(group)},servername:${once(server)},port:${port}`
    const [single = {}] = await recorder.rows(
      `/nitro/v1/stat/servicegroupmember?args=${args}`,
      'servicegroupmember',
    )
    recorder.say({
      group: recorder.alias('group', group),
      member: recorder.alias('member', `${group} ${server} ${port}`),
      servicetype: word(member['servicetype']) ?? word(whole['servicetype']),
      nested: figure(member['totalrequests']),
      single: figure(single['totalrequests']),
    })
  }
}
