/** The process that serves dies, and another one begins: what it carried is cut, what was set is forgotten or read from a file. */
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { freePort, until } from '../../support/haproxy.js'
import { type Config, lab, member, site, web1 } from '../../support/haproxy-lab.js'
import { Backend, request, Tunnel } from '../../support/haproxy-traffic.js'

const WITH_FILE: Config = (port) =>
  site(port, 'web', { backend: '  load-server-state-from-file global' })

describe.each(engines('haproxy'))('a crash of a worker of HAProxy $version', (engine) => {
  it.concurrent.for(['SIGKILL', 'SIGSEGV'] as const)(
    'in mid-drain is named, and the drain goes on (%s)',
    async (signal, { expect }) => {
      await using it = await lab({ engine })
      const { haproxy, s1 } = it
      await using lb = it.provider()
      const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
      await until(() => s1.active === 1, 'in flight')
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      let busyAtIdle = -1
      drained.on('idle', () => (busyAtIdle = s1.active))
      await until(() => drained.why().some(({ text }) => text === '1 in flight'), 'it is counted')
      await haproxy.crash(signal)
      expect((await answer).cut).toBe(true)
      const seen = member(await drained.done)
      expect(seen).toMatchObject({ outcome: 'idle', sealed: true, verifiedIdle: false })
      expect(seen.lost).toHaveLength(1)
      expect(seen.why.map(({ text }) => text).join()).toContain('was cut, or finished unseen')
      expect(busyAtIdle).toBe(0)
      await drained.restore()
      expect(await haproxy.mask('web', 's1')).toBe(0)
    },
  )

  it.concurrent.for([true, false])(
    'of a held drain puts it back, and can be undone (state file: %s)',
    async (file, { expect }) => {
      await using it = await lab({
        engine,
        ...(file && { config: WITH_FILE, global: '  server-state-file state' }),
      })
      const { haproxy } = it
      if (file) await haproxy.keepState()
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      if (file) await haproxy.keepState()
      await haproxy.crash('SIGKILL')
      await until(async () => (await haproxy.mask('web', 's1')) === 1, 'held again')
      await until(() => drained.report().members[0]?.phase === 'idle', 'idle in the new process')
      await drained.restore()
      expect(await haproxy.mask('web', 's1')).toBe(0)
    },
  )

  it.concurrent('takes along a server that was added at run time', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy } = it
    const port = await freePort()
    await using added = await Backend.start(port, 's9')
    expect(await haproxy.cli(`add server web/s9 127.0.0.1:${port}`)).toContain('registered')
    await haproxy.cli('enable server web/s9')
    await haproxy.cli('set server web/s1 state maint;set server web/s2 state maint')
    await using tunnel = await Tunnel.websocket(haproxy.port('web'))
    expect(added.active).toBe(1)
    await haproxy.cli('set server web/s1 state ready;set server web/s2 state ready')
    await using lb = it.provider()
    await using drained = startDrain(lb, { pool: 'web', member: 's9' }, { timeout: '60s' })
    await drained.inForce
    await haproxy.crash('SIGKILL')
    const seen = member(await drained.done)
    expect(seen).toMatchObject({ outcome: 'gone', verifiedIdle: false })
    expect(seen.error?.message).toContain('or a reload did not keep it')
    await until(() => tunnel.closed, 'cut')
  })
})
