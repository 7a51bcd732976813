/** An undo that the API takes for done goes by way of maint, and the look after that fails. */
import type { ChangeResult } from 'drainable/provider'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'
import { connect, context, present } from '../../support/dataplane.js'
import { meddling } from '../../support/dataplane-meddling.js'

const WEB1 = { pool: 'web', member: 'web1' }
const WEB2 = { pool: 'web', member: 'web2' }
const POOLS = { web: ['web1', 'web2', 'web3'] }

test.each([
  ['', { durable: false }],
  [', whose undo waits for a reload', { durable: true, confirm: 'reload' }],
] as const)('one look that fails says nothing of another server%s', async (_, options) => {
  await using fake = await startFake({ pools: POOLS, reloadDelay: 10 })
  let isOpen = false
  await using puts = await meddling(fake.url, /PUT .*runtime/, async () => {
    const states = (await fake.run('show servers state web')).split('\n')
    isOpen ||= states.some((line) => / web1 .* 32 /.test(line))
  })
  let answers = 0
  await using front = await meddling(
    puts.url,
    /GET .*stats/,
    () => Promise.resolve(),
    () => (isOpen && answers++ === 0 ? { status: 403, body: { message: 'no' } } : undefined),
  )
  await using lb = connect(front, { maintCuts: false, ...options })
  const refs = [WEB1, WEB2]
  await lb.apply(
    refs.map((ref) => ({ kind: 'hold', ref, to: 'drain' })),
    context(),
  )
  if (options.durable) await fake.reload()
  for (const ref of refs) fake.setMask(ref, ref === WEB1 ? 0x28 : 0x08)

  const results = await lb.apply(
    refs.map((ref) => ({ kind: 'restore', ref, expect: 'drain', to: 'ready' })),
    context(),
  )
  expect(answers).toBeGreaterThan(0)
  expect(results).toMatchObject<Partial<ChangeResult>[]>([
    { ref: WEB1, status: 'unknown' },
    { ref: WEB2, status: 'applied' },
  ])
  expect(await present(lb, WEB2)).toMatchObject({ own: 'ready', serves: true })
})
