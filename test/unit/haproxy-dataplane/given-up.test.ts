import { restore, startDrain, type Ticket } from 'drainable'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'
import { connect, present, until } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }

test.each(['2.9', '3.2', '3.4'])(
  'work in a process that was given up is not called ended on %s',
  async (version) => {
    await using fake = await startFake({ version })
    await using lb = connect(fake, { oldWorkers: 'accept', maintCuts: false })
    await fake.occupy(WEB1)
    let ticket: Ticket | undefined
    const onTicket = (next: Ticket | null): void => void (ticket = next ?? ticket)
    const run = startDrain(lb, WEB1, { timeout: '60s', onTicket })
    await until('the drain', async () => (await present(lb, WEB1)).own === 'drain')
    await until('its work is seen', () =>
      Promise.resolve(run.why().some(({ code }) => code === 'in-flight')),
    )
    await fake.reload()
    const [member] = (await run.done).members
    expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(member!.lost).toMatchObject([{ active: 1, note: "given up by oldWorkers: 'accept'" }])
    const why = member!.why.map(({ text }) => text).join()
    expect(why).toContain('nothing tells what became of that work')
    expect(why).not.toContain('finished unseen')
    await run.release()
    expect((await restore(lb, ticket!)).outcome).toBe('restored')
  },
)
