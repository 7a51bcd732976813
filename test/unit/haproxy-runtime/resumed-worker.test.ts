import { expect, test } from 'vitest'
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'

const web1 = { pool: 'web', member: 'web1' }

// A ticket that knows an old worker, and a provider that has never seen it.
test('a worker in a ticket that the master does not list has ended', async () => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
  const options = { socket: fake.socket, ...(fake.master && { master: fake.master }) }
  const tickets: Ticket[] = []
  const end = await fake.occupy(web1)
  {
    await using lb = haproxyRuntime(options)
    await using run = startDrain(lb, web1, {
      timeout: '1m',
      onTicket: (ticket) => void tickets.push(structuredClone(ticket)),
    })
    await run.inForce
    await fake.reload() // the request stays in the old worker
    await expect.poll(() => run.why().map(({ code }) => code)).toContain('old-scope')
    tickets.push(structuredClone(await run.ticket))
  }
  const ticket = tickets.at(-1)!
  expect(ticket.members[0]!.processes).toHaveLength(2)
  await end() // and the old worker with it, before the next process looks
  await using lb = haproxyRuntime(options)
  await using run = resumeDrain(lb, ticket)
  const report = await run.done
  expect(report.outcome).toBe('idle')
  expect(report.members[0]!.lost).toHaveLength(1)
  expect(report.members[0]!.verifiedIdle).toBe(false)
})
