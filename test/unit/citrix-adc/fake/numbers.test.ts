import { describe, expect, test } from 'vitest'
import { rows, send } from '../nitro-client.js'
import { WEB1, start } from './set-up.js'

describe('numbers', () => {
  test('pools distort the counts; only services tell transactions', async () => {
    await using fake = await start({ vservers: { vs: ['svc1'] }, pools: { web: ['web1:80'] } })
    await fake.occupy(WEB1, { active: 2, queued: 1, pooled: 5, idleClients: 4 })
    const [group] = rows(
      await send(fake, 'GET /stat/servicegroup/web?statbindings=yes'),
      'servicegroup',
    )
    const [nested] = group!['servicegroupmember'] as Record<string, unknown>[]
    expect(nested).toMatchObject({
      servicegroupname: 'web?web1?80',
      svrestablishedconn: '7',
      curreusepool: '5',
      surgecount: '1',
      curclntconnections: '7',
      primaryport: 80,
    })
    expect(nested).not.toHaveProperty('activetransactions')
    const [service] = rows(await send(fake, 'GET /stat/service/svc1'), 'service')
    expect(service).toHaveProperty('activetransactions', '0')
  })

  test('stat repeats itself for a while when the test says so', async () => {
    await using fake = await start({ statInterval: 60_000 })
    await send(fake, 'GET /stat/servicegroup/web?statbindings=yes')
    await fake.occupy(WEB1)
    const [group] = rows(
      await send(fake, 'GET /stat/servicegroup/web?statbindings=yes'),
      'servicegroup',
    )
    expect((group!['servicegroupmember'] as Record<string, unknown>[])[0]).toMatchObject({
      svrestablishedconn: '0',
    })
  })
})
