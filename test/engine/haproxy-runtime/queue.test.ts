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

describe.each(engines('haproxy'))('a queue on HAProxy $version', (engine) => {
  it.concurrent.for([
    ['from drain', false, ''],
    ['from maintenance, by way of drain for its check', true, 'check inter 100 rise 2 fall 3'],
    ['from maintenance', true, ''],
  ] as const)('is served by a server that an undo opens %s', async ([, seal, s1], { expect }) => {
    const config = (port: (name: string) => number): string =>
      site(port, 'web', { backend: FULL, s1 })
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

  it.concurrent(
    'is served by a server that ready() opens after another client drained it',
    async ({ expect }) => {
      const config = (port: (name: string) => number): string =>
        site(port, 'web', { backend: FULL })
      await using it = await lab({ engine, config })
      await using lb = it.provider()
      await it.haproxy.cli('set server web/s1 state drain')
      const sent = await waiting(it)
      await ready(lb, web1)
      for (const answer of await Promise.all(sent))
        expect(answer).toMatchObject({ status: 200, server: 's1' })
      expect(await it.haproxy.stat('web', 's1', 'slim')).toBe('1')
    },
  )

  it.concurrent(
    'is served by a server that comes up at weight 0 for a backup',
    async ({ expect }) => {
      const config = (port: (name: string) => number): string =>
        `${site(port, 'web', { backend: FULL })}  server s3 127.0.0.1:${port('s3')} backup\n`
      await using it = await lab({ engine, config })
      await using lb = it.provider()
      await using run = startDrain(lb, web1, { timeout: '30s', seal: true })
      expect((await run.done).outcome).toBe('idle')
      const sent = await waiting(it)
      expect((await run.restore()).outcome).toBe('restored')
      for (const answer of await Promise.all(sent))
        expect(answer).toMatchObject({ status: 200, server: 's1' })
    },
  )

  it.concurrent('is served by a server without a limit', async ({ expect }) => {
    const config = (port: (name: string) => number): string =>
      site(port, 'web', { backend: FULL, s1: 'maxconn 0' })
    await using it = await lab({ engine, config })
    await using lb = it.provider()
    await it.haproxy.cli('set server web/s1 state drain')
    const sent = await waiting(it)
    await ready(lb, web1)
    for (const answer of await Promise.all(sent))
      expect(answer).toMatchObject({ status: 200, server: 's1' })
    expect(await it.haproxy.stat('web', 's1', 'slim')).toBe('')
  })
})
