/** The process that drains is killed, or gives up: at every stage. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { drain, fileTickets, resumeDrain, startDrain, type Ticket } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, expect, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { site, web1, type Config } from '../../support/haproxy-lab.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

const root = new URL('../../../', import.meta.url).pathname

const config: Config = (port) => site(port, 'web')

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent.for(['write-1', 'write-2', 'draining', 'idle', 'held'])(
    'killed at %s, a drain is resumed in another process and restored',
    async (stage, { expect: expectThat }) => {
      await using haproxy = await Haproxy.start({ engine, config })
      await using s1 = await Backend.start(haproxy.port('s1'), 's1')
      await using s2 = await Backend.start(haproxy.port('s2'), 's2')
      const busy = stage !== 'idle' && stage !== 'held'
      const answer = busy ? request(haproxy.port('web'), '/hold', { cookie: 's1' }) : undefined
      if (busy) await until(() => s1.active === 1, 'in flight')
      const folder = join(haproxy.dir, 'tickets')
      const child = spawn(
        process.execPath,
        [
          '--import',
          `${root}scripts/source.mjs`,
          `${root}test/support/haproxy-drain-child.ts`,
          haproxy.socket,
          haproxy.master,
          folder,
          stage,
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      await once(child.stdout, 'data')
      child.kill('SIGKILL')
      await once(child, 'close')

      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      const ticket = (await fileTickets(folder).get('drain-1')) as Ticket
      const resumed = resumeDrain(lb, ticket)
      let busyAtIdle = -1
      resumed.on('idle', () => (busyAtIdle = s1.active))
      if (busy) {
        await until(
          async () => (await haproxy.stat('web', 's1', 'status')) === 'DRAIN',
          'drained, by whichever of the two',
        )
        expectThat(resumed.report().members[0]?.verifiedIdle).not.toBe(true)
        s1.release()
        expectThat((await answer)?.status).toBe(200)
      }
      const report = await resumed.done
      expectThat(report.members[0]).toMatchObject({
        outcome: 'idle',
        verifiedIdle: true,
        sealed: true,
        wasAdmin: 'ready',
      })
      if (busy) expectThat(busyAtIdle).toBe(0)
      await resumed.restore()
      expectThat(await haproxy.stat('web', 's1', 'status')).toBe('no check')
      expectThat(s2.active).toBe(0)
    },
  )

  it('an abort at any stage leaves no socket and no timer', async () => {
    await using haproxy = await Haproxy.start({ engine, config, mode: 'plain' })
    await using s1 = await Backend.start(haproxy.port('s1'), 's1')
    const answer = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    const ours = (): string[] =>
      process.getActiveResourcesInfo().filter((name) => /^(Pipe|Timeout)/.test(name))
    const before = ours().length
    for (const frozen of [false, true]) {
      for (const after of [0, 1, 5, 20, 100]) {
        const lb = haproxyRuntime({ socket: haproxy.socket })
        const stop = new AbortController()
        const pid = await haproxy.pid()
        if (frozen) process.kill(pid, 'SIGSTOP')
        const drained = startDrain(lb, web1, { timeout: '20s', signal: stop.signal })
        if (after > 0) await new Promise((resolve) => setTimeout(resolve, after))
        stop.abort()
        const report = await drained.done
        expect(report.outcome).toBe('aborted')
        await drained.close()
        await lb.close()
        if (frozen) process.kill(pid, 'SIGCONT')
        await until(() => ours().length <= before, `nothing is left after ${after} ms`, 2_000)
      }
    }
    s1.release()
    await answer
  })

  it.concurrent(
    'a drain works over TCP with a small tune.bufsize',
    async ({ expect: expectThat }) => {
      await using haproxy = await Haproxy.start({
        engine,
        mode: 'plain',
        global: '  stats socket ipv4@127.0.0.1:${CLI} level admin\n  tune.bufsize 4096',
        config: (port) => `
backend many
${Array.from({ length: 700 }, (_, index) => `  server a-rather-long-name-of-a-server-${index} 127.0.0.1:${port('s1')}`).join('\n')}`,
      })
      await using lb = haproxyRuntime({ socket: { host: '127.0.0.1', port: haproxy.cliPort } })
      const some = Array.from({ length: 60 }, (_, index) => ({
        pool: 'many',
        member: `a-rather-long-name-of-a-server-${index * 11}`,
      }))
      const report = await drain(lb, some, { timeout: '20s' })
      expectThat(report.members.every(({ outcome, sealed }) => outcome === 'idle' && sealed)).toBe(
        true,
      )
      // Over TCP nothing excludes a process that it replaced.
      expectThat(report.members.some(({ verifiedIdle }) => verifiedIdle)).toBe(false)
    },
  )
})
