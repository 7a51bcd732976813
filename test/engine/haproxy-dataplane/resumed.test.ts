/** A drain that another process resumes: its ticket names a HAProxy process that this provider has never met. */
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import { describe, expect, test } from 'vitest'
import { connect } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'

const WEB1 = { pool: 'web', member: 'web1' }

describe.concurrent.each(pairs('3.2'))(
  'a resumed drain, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('waits for a process of before until within is over', async () => {
      const options = { maintCuts: false, oldWorkers: { within: '2s' } } as const
      await using rig = await front(engine, api, options, CONFIG, '  hard-stop-after 2s')
      let ticket: Ticket
      {
        await using run = startDrain(rig.lb, WEB1, { timeout: '60s', settle: '5s' })
        await run.inForce
        ticket = await run.ticket
      }
      await rig.haproxy.reload()
      await using lb = connect(rig.fake, options)
      await using resumed = resumeDrain(lb, ticket)
      expect((await resumed.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    })
  },
)
