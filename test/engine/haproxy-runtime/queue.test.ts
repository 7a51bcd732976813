/** What waits in the queue of a backend whose servers are full goes to the server that is opened, too. */
import { ready, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, site, web1, type Lab } from '../../support/haproxy-lab.js'
import { request, type Answer } from '../../support/haproxy-traffic.js'

const FULL = '  timeout queue 20s\n  default-server maxconn 1'

/** Two requests that wait for any server, while s2 is kept full. */
async function waiting({ haproxy, s2 }: Lab): Promise<Promise<Answer>[]> {
  const port = haproxy.port('web')
  void request(port, '/hold', { cookie: 's2' })
  await until(() => s2.active === 1, 'request on s2')
  const sent = [request(port, '/'), request(port, '/')]
  await until(async () => (await haproxy.stat('web', 'BACKEND', 'qcur')) === '2', 'full queue')
  return sent
}

const BACKUP = '  server s3 127.0.0.1:9 backup\n'

describe.each(engines('haproxy'))('a queue on HAProxy $version', (engine) => {
  it.concurrent.for([
    ['from drain', { seal: false }],
    ['from maintenance', { seal: true }],
    [
      'from maintenance, by way of drain for its check',
      { seal: true, s1: 'check inter 100 rise 2 fall 3' },
    ],
    ['from maintenance, at weight 0 for a backup', { seal: true, more: BACKUP }],
  ] as const)('is served by a server that an undo opens %s', async ([, how], { expect }) => {
    const { seal, s1, more } = { s1: '', more: '', ...how }
    const config = (port: (name: string) => number): string =>
      `${site(port, 'web', { backend: FULL, s1 })}${more}`
    await using it = await lab({ engine, config })
    await using lb = it.provider()
    await using run = startDrain(lb, web1, { timeout: '30s', seal })
    expect((await run.done).outcome).toBe('idle')
    const sent = await waiting(it)
    expect((await run.restore()).outcome).toBe('restored')
    for (const answer of await Promise.all(sent))
      expect(answer).toMatchObject({ status: 200, server: 's1' })
    expect(it.s2.active).toBe(1)
  })

  it.concurrent.for([
    ['with a limit', '', '1'],
    ['without a limit', 'maxconn 0', ''],
  ] as const)(
    'is served by a server %s that ready() opens, and that keeps it',
    async ([, s1, limit], { expect }) => {
      const config = (port: (name: string) => number): string =>
        site(port, 'web', { backend: FULL, s1 })
      await using it = await lab({ engine, config })
      await using lb = it.provider()
      await it.haproxy.cli('set server web/s1 state drain')
      const sent = await waiting(it)
      await ready(lb, web1)
      for (const answer of await Promise.all(sent))
        expect(answer).toMatchObject({ status: 200, server: 's1' })
      expect(await it.haproxy.stat('web', 's1', 'slim')).toBe(limit)
    },
  )
})
