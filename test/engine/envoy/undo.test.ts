/** An undo is over when every proxy has taken it: what happens to the provider after that changes nothing. */
import {
  drain,
  fileTickets,
  ready,
  restore,
  startDrain,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { describe, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { setOf } from '../../support/envoy/sets.js'
import { fileStage, look } from '../../support/envoy/stage.js'
import { until } from '../../support/wait.js'

/** Three proxies that ask for their set over REST, once a second or so. */
async function threeByRest(path: string) {
  const a = await startBackend()
  const b = await startBackend()
  const dir = await workDir()
  const sink = restEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
  const admin: string[] = []
  const lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  const { port } = await until(() => sink.address, 'a listening sink')
  const proxies = await Promise.all(
    [1, 2, 3].map((n) =>
      startEnvoy({ path, eds: { rest: port, refresh: '1s' }, id: `envoy-${n}` }),
    ),
  )
  admin.push(...proxies.map((proxy) => proxy.admin))
  const tickets = fileTickets(dir.path)
  const ref = { pool: 'web', member: a.member }
  const open = startDrain(lb, ref, { timeout: '30s', tickets, id: 'job' })
  await open.done
  return {
    lb,
    ref,
    tickets,
    proxies,
    run: open,
    /** Which of the proxies still show the endpoint as draining. */
    async draining(): Promise<readonly boolean[]> {
      const texts = await Promise.all(proxies.map((proxy) => proxy.get('/clusters')))
      return texts.map((text) => text.includes(`${a.member}::health_flags::/eds_status_draining`))
    },
    async [Symbol.asyncDispose]() {
      await lb.close()
      for (const one of [...proxies, a, b, dir]) await one[Symbol.asyncDispose]()
    },
  }
}

const OPEN = [false, false, false]

describe.each(engines('envoy'))('Envoy $version by REST, closed after an undo', ({ path }) => {
  test.concurrent('by the handle is open in three of three proxies', async ({ expect }) => {
    await using it = await threeByRest(path)
    expect(await it.draining()).toEqual([true, true, true])
    const { members } = await it.run.restore()
    await it.lb.close()
    expect([members[0]?.outcome, await it.draining()]).toEqual(['restored', OPEN])
    expect(await it.tickets.get('job')).toBeUndefined()
  })

  test.concurrent('by the ticket is open in three of three proxies', async ({ expect }) => {
    await using it = await threeByRest(path)
    await it.run.release()
    const ticket = (await it.tickets.get('job')) as Ticket
    const { outcome } = await restore(it.lb, ticket, { tickets: it.tickets })
    await it.lb.close()
    expect([outcome, await it.draining()]).toEqual(['restored', OPEN])
    expect(await it.tickets.get('job')).toBeUndefined()
  })

  test.concurrent('by ready() is open in three of three proxies', async ({ expect }) => {
    await using it = await threeByRest(path)
    await it.run.release()
    await ready(it.lb, it.ref)
    await it.lb.close()
    expect(await it.draining()).toEqual(OPEN)
    expect(await it.tickets.get('job')).toBeUndefined()
  })

  test.concurrent(
    'names the proxy that hangs, and keeps the ticket',
    async ({ expect }) => {
      await using it = await threeByRest(path)
      it.proxies[2]!.pause()
      const { members } = await it.run.restore()
      it.proxies[2]!.resume()
      expect(members[0]).toMatchObject({ outcome: 'unreachable', error: { code: 'UNREACHABLE' } })
      expect(members[0]?.error?.message).toContain(it.proxies[2]!.admin)
      expect(await it.tickets.get('job')).toBeDefined()
    },
    60_000,
  )
})

describe.each(engines('envoy'))('a ticket that outlived its undo on Envoy $version', ({ path }) => {
  test.concurrent('is no other client, and goes with the next undo', async ({ expect }) => {
    await using stage = await fileStage(path)
    await using dir = await workDir()
    const { a, file, lb, proxy, refOf } = stage
    const tickets = fileTickets(dir.path)
    await drain(lb, refOf(a), { timeout: '30s', tickets, id: 'job' })
    const ticket = (await tickets.get('job')) as Ticket
    // As where the process is killed in between.
    const killed: TicketStore = {
      get: (key) => tickets.get(key),
      set: (key, value) => tickets.set(key, value),
      delete: () => Promise.resolve(),
    }
    expect((await restore(lb, ticket, { tickets: killed })).outcome).toBe('restored')
    const endpoints = fileEndpoints({ cluster: 'web', path: file })
    await using next = envoy({ endpoints, admin: [proxy.admin] })
    const left = (await tickets.get('job')) as Ticket
    const { outcome, members } = await restore(next, left, { tickets })
    expect([outcome, members[0]?.outcome, members[0]?.why]).toEqual(['restored', 'restored', []])
    expect(await tickets.get('job')).toBeUndefined()
    expect((await look(next, refOf(a))).own).toBe('ready')
  })
})
