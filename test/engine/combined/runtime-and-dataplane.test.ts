/** One combination of HAProxy's Runtime API and its Data Plane API, the latter by its stand-in before a real HAProxy. */
import { join } from 'node:path'
import { combineProviders, roll, startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, it } from 'vitest'
import { connect } from '../../support/dataplane.js'
import { front, pairs } from '../../support/dataplane-front.js'
import { FleetClient, FleetServer } from '../../support/fleet.js'
import { freePort, Haproxy, until } from '../../support/haproxy.js'

const web1 = { pool: 'web', member: 'web1' }

describe.concurrent.each(pairs('2.6', '3.2'))(
  'Runtime API and Data Plane API $api, HAProxy $engine.version',
  ({ engine, api }) => {
    it('a roll over both fails no request, reloads included', async ({ expect }) => {
      await using stack = new AsyncDisposableStack()
      const port = await freePort()
      const base = 51 + (engine.series === '2.6' ? 0 : 10)
      const addresses = Array.from({ length: 3 }, (_, n) => `127.0.0.${base + n}`)
      const servers: FleetServer[] = []
      for (const address of addresses)
        servers.push(stack.use(await FleetServer.start(address, port)))
      const config = (given: (name: string) => number): string => `
frontend f_web
  bind 127.0.0.1:${given('web')}
  default_backend web
backend web
  default-server check inter 100ms rise 1 fall 3
${addresses.map((address, n) => `  server web${n + 1} ${address}:${port}`).join('\n')}`
      const edge = stack.use(await Haproxy.start({ engine, config }))
      const core = stack.use(await Haproxy.start({ engine, config }))
      const fake = await startFake({
        front: {
          socket: core.socket,
          config: join(core.dir, 'haproxy.cfg'),
          reload: () => core.reload(),
        },
        version: api,
        reloadDelay: 50,
      })
      stack.defer(() => fake.close())
      const eyes = stack.use(haproxyRuntime({ socket: core.socket, master: core.master }))
      const all = stack.use(
        combineProviders({
          edge: haproxyRuntime({ socket: edge.socket, master: edge.master }),
          core: connect(fake, { runtime: eyes }),
        }),
      )
      const clients = [edge, core].flatMap((haproxy) =>
        (['/', '/stream'] as const).map((path) =>
          stack.use(new FleetClient(haproxy.port('web'), path)),
        ),
      )
      await until(() => clients.every(({ requests }) => requests > 3), 'load', 30_000)
      const acted: string[] = []
      const report = await roll(
        all,
        ['edge', 'core'].map((balancer) => ({ pool: 'web', balancer })),
        {
          settle: '200ms',
          timeout: '30s',
          act: async ({ address = '' }) => {
            const server = servers.find((one) => one.address === address)
            acted.push(`${address}: ${server?.active ?? 'no server'}`)
            // What a reload forgets is put back while the server is worked on. Until then it gets requests.
            if (acted.length > 1) return core.reload()
            await edge.reload()
            const name = `web${addresses.indexOf(address) + 1}`
            const held = async (): Promise<boolean> =>
              /^(DRAIN|MAINT)/.test(await edge.stat('web', name, 'status'))
            await until(held, 'held again')
            const idle = async (): Promise<boolean> =>
              (await edge.stat('web', name, 'scur')) === '0' && server?.active === 0
            await until(idle, 'the end of what came in the gap')
            await server?.restart()
          },
        },
      )
      expect(report).toMatchObject({ outcome: 'done', leftDrained: [], leftAsFound: [] })
      expect(report.done.map(({ verifiedIdle }) => verifiedIdle)).not.toContain(false)
      expect(acted.sort()).toEqual(addresses.map((address) => `${address}: 0`))
      expect(servers.map(({ cut }) => cut)).toEqual([0, 0, 0])
      expect(clients.flatMap(({ failures }) => failures)).toEqual([])
      for (const haproxy of [edge, core])
        expect(await haproxy.stat('web', 'web1', 'status')).toMatch(/^UP/)
    })

    it('one HAProxy reached through both is drained and opened once', async ({ expect }) => {
      await using rig = await front(engine, api)
      const { haproxy } = rig
      const eyes = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      await using all = combineProviders({ socket: eyes, rest: rig.lb })
      const held = await rig.hold(web1)
      const both = ['socket', 'rest'].map((balancer) => ({ ...web1, balancer }))
      const run = startDrain(all, both, { timeout: '30s', settle: '200ms' })
      await run.inForce
      expect(await haproxy.stat('web', 'web1', 'status')).toBe('DRAIN')
      expect(run.report().members.map(({ phase }) => phase)).toEqual(['draining', 'draining'])
      rig.backends['web1']?.release()
      expect((await held.answer).status).toBe(200)
      const report = await run.done
      expect(report.outcome).toBe('idle')
      expect(report.members.map(({ sealed }) => sealed)).toEqual([true, true])
      await run.restore()
      expect(await haproxy.stat('web', 'web1', 'status')).toBe('no check')
    })
  },
)
