import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { engines } from '../../support/engines.js'
import { startGateway, TARGET } from '../../support/envoy-gateway.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { LARGE, slowClient, startLarge } from '../../support/slow-client.js'
import { delay, until } from '../../support/wait.js'

const HIDDEN = {
  stats_config: {
    stats_matcher: {
      exclusion_list: { patterns: [{ suffix: 'downstream_cx_tx_bytes_buffered' }] },
    },
  },
}

/** The kernel takes no more than that of a connection (SO_SNDBUF), so that the rest stays in Envoy. */
const SMALL = {
  socket_options: [{ level: 1, name: 7, int_value: 65_536, state: 'STATE_PREBIND' }],
}

describe.each(engines('envoy'))('responses in write buffers of Envoy $version', ({ path }) => {
  test('keep it from idle until they are sent, and quit cuts none', async () => {
    await using gateway = await startGateway(path, { envoy: { listener: SMALL } })
    const { proxy, provider, stage } = gateway
    await using large = await startLarge()
    await writeEds(stage.file, [setOf([large.port])], '2')
    const version = () => proxy.get('/stats?filter=^cluster.web.version_text$')
    await until(async () => (await version()).includes('"2"'), 'the set')
    const clients = await Promise.all([1, 2, 3, 4].map(() => slowClient(proxy.http)))
    const requests = () => proxy.get('/stats?filter=^http.in.downstream_rq_active$')
    await until(() => proxy.get('/stats?filter=^http.in.downstream_rq_total$'), 'a count')
    // Envoy has the end of all of them, and no client has.
    const hasAll = async (): Promise<boolean> => {
      if (clients.every(({ got }) => got > 0) && (await requests()).endsWith(': 0\n')) return true
      for (const client of clients) client.read()
      return false
    }
    await until(hasAll, 'the last byte in a buffer', 30_000)
    await using run = startDrain(provider, TARGET, { timeout: '60s', keepReady: 0 })
    await until(() => run.why().some(({ text }) => text.includes('not sent yet')), 'the buffers')
    await delay(1_500)
    expect(run.report().members[0]?.phase).toBe('draining')
    const ends = clients.map((client) => client.finish())
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await provider.quit()
    for (const bytes of await Promise.all(ends)) expect(bytes).toBeGreaterThanOrEqual(LARGE)
  })

  test('that are hidden leave it unread', async () => {
    await using gateway = await startGateway(path, { envoy: { bootstrap: HIDDEN } })
    await using run = startDrain(gateway.provider, TARGET, { timeout: '60s', keepReady: 0 })
    const name = 'http.in.downstream_cx_tx_bytes_buffered'
    await until(() => run.why().some(({ text }) => text.includes(name)), 'the hidden gauge')
    expect(run.report().members[0]?.phase).not.toBe('idle')
  })
})
