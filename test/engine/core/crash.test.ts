/** The process that drains is killed at every stage; another one goes on from its ticket, or undoes it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileTickets, restore, resumeDrain, type Ticket } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const stages = [
  'before-hold',
  'after-hold',
  'draining',
  'before-seal',
  'after-seal',
  'idle',
] as const

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent.for(stages)(
    'killed at the stage %s, the drain is resumed to idle and undone',
    async (stage, { expect }) => {
      await using haproxy = await Haproxy.start({
        engine,
        config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
  server s1 127.0.0.1:${port('s1')} cookie s1
  server s2 127.0.0.1:${port('s2')} cookie s2`,
      })
      await using s1 = await Backend.start(haproxy.port('s1'), 's1')
      await using s2 = await Backend.start(haproxy.port('s2'), 's2')
      expect(s2.active).toBe(0)
      const early = stage === 'before-hold' || stage === 'after-hold' || stage === 'draining'
      const answer = early ? request(haproxy.port('web'), '/hold', { cookie: 's1' }) : undefined
      if (early) await until(() => s1.active === 1, 'a request is in flight')

      const folder = join(haproxy.dir, 'tickets')
      const script = [
        join(root, 'test/engine/core/crashing-drain.ts'),
        haproxy.socket,
        haproxy.master,
        folder,
        stage,
      ]
      const child = spawn(
        process.execPath,
        ['--import', join(root, 'scripts/source.mjs'), ...script],
        { stdio: ['ignore', 'pipe', 'pipe'] },
      )
      let said = ''
      let failed = ''
      child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (failed += chunk.toString()))
      await until(
        () => {
          if (child.exitCode !== null) throw new Error(`the drain ended before ${stage}: ${failed}`)
          return said.includes(stage)
        },
        stage,
        30_000,
      )
      child.kill('SIGKILL')
      await once(child, 'close')

      const tickets = fileTickets(folder)
      const ticket = (await tickets.get('crash')) as Ticket
      expect(ticket.members[0]!.found?.own).toBe('ready')
      await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
      await using run = resumeDrain(lb, ticket, { tickets })
      if (early) {
        await until(() => run.why().some((why) => why.code === 'in-flight'), 'the request is seen')
        expect(s1.active).toBe(1)
        s1.release()
        expect((await answer)?.body).toBe('done')
      }
      const report = await run.done
      expect(report.members[0]).toMatchObject({
        outcome: 'idle',
        verifiedIdle: true,
        sealed: true,
        wasAdmin: 'ready',
      })
      expect(await haproxy.stat('web', 's1', 'status')).toBe('MAINT')

      const undone = await restore(lb, await run.ticket, { tickets })
      expect(undone.members[0]!.error).toBeUndefined()
      expect(await haproxy.stat('web', 's1', 'status')).toBe('no check')
      expect(await tickets.get('crash')).toBeUndefined()
    },
  )
})
