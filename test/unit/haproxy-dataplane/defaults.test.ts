import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { connect, present } from '../../support/dataplane.js'

const config = `defaults cutting
  default-server on-marked-down shutdown-sessions

defaults plain
  mode http

backend web from plain
  server web1 127.0.0.1:8001

backend api from cutting
  server web1 127.0.0.1:8002

backend last
  server web1 127.0.0.1:8003
`

describe.each(['2.9', '3.0', '3.2', '3.4'])('the effect of maint on %s', (version) => {
  test.each([
    ['web', 'gentle'],
    ['api', 'cuts'],
    ['last', 'gentle'],
  ])('in %s is said by its own defaults section: %s', async (pool, maint) => {
    await using fake = await startFake({ version, config })
    await using lb = connect(fake)
    expect((await present(lb, { pool, member: 'web1' })).maint).toBe(maint)
  })
})
