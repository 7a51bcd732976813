import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { ctx, rig, WEB1 } from './rig.js'

test('a restore that was answered is not sent over what an operator did since', async () => {
  await using it = await rig({}, { callTimeout: '1m' })
  await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
  const from = it.fake.requests.length
  const lines = () => it.fake.requests.slice(from).map(({ line }) => line)
  const done = { status: 200, body: {}, execute: true, times: 1 } as const
  it.fake.fail({ match: /^PATCH .*members/, how: 'status', ...done })
  it.fake.fail({ match: /^GET .*members\//, how: 'reset', times: 1 })
  const ended = it.lb.apply([{ kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' }], ctx())
  await eventually(() => expect(lines().some((line) => /^GET .*members\//.test(line))).toBe(true))
  await it.fake.setBehind(WEB1, 'maint')
  await ended
  expect(it.fake.state(WEB1)).toBe('maint')
})

test('a copy that DNS took away keeps no other one from being put back', async () => {
  const copy = (address: string) => {
    return { name: `_auto_${address}:80`, fqdn: 'www.example.com', ephemeral: true }
  }
  const [site, made, other] = [
    { name: 'site:80', fqdn: 'www.example.com' },
    copy('192.0.2.7'),
    copy('192.0.2.8'),
  ]
  const refOf = ({ name }: { name: string }) => ({ pool: '/Common/web', member: `/Common/${name}` })
  const options = { pair: { bothActive: true }, pools: { web: [site, made, other] } } as const
  await using it = await rig({ ...options, fqdnInherits: true }, { callTimeout: '1m' })
  const [one, two] = it.fake.units
  await it.fake.setBehind(refOf(other), 'drain')
  const body = {
    code: 400,
    message: '01070734:3: Configuration error: no',
    errorStack: [],
    apiError: 3,
  }
  it.fake.fail({ match: /^PATCH /, how: 'status', status: 400, body, unit: two! })
  const ended = it.lb.apply(
    [{ kind: 'hold', ref: { pool: 'web', member: site.name }, to: 'drain' }],
    ctx(),
  )
  const sent = () => it.fake.requests.some(({ line }) => line.startsWith('PATCH'))
  await eventually(() => expect(sent()).toBe(true))
  await it.fake.setBehind(refOf(made), 'gone')
  await ended
  expect([site, other].map((each) => it.fake.state(refOf(each), one))).toEqual(['ready', 'drain'])
})
