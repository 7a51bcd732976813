/** Reloads with a configuration that HAProxy refuses: the process that serves stays, and its master says otherwise. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { cli, type Haproxy, until } from '../../support/haproxy.js'
import { lab, member, SEALED_IDLE, web1 } from '../../support/haproxy-lab.js'
import { request } from '../../support/haproxy-traffic.js'

describe.each(engines('haproxy'))('a failed reload of HAProxy $version', (engine) => {
  it.concurrent('changes nothing for a drain under way', async ({ expect }) => {
    await using it = await lab({ engine })
    const { haproxy, s1 } = it
    await using lb = it.provider()
    const answer = request(haproxy.port('web'), '/stream', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    await drained.inForce
    const before = await haproxy.pid()
    await failToReload(haproxy)
    expect(await haproxy.pid()).toBe(before)
    expect(await haproxy.stat('web', 's1', 'status')).toBe('DRAIN')
    let busyAtIdle = -1
    drained.on('idle', () => (busyAtIdle = s1.active))
    s1.release()
    expect((await answer).cut).toBe(false)
    expect(member(await drained.done)).toMatchObject({ ...SEALED_IDLE, lost: [] })
    expect(busyAtIdle).toBe(0)
  })

  // 3.2 and 3.4 list the process that serves under '# old workers' from then on.
  it.concurrent(
    'before the first look leaves the serving process the current one',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const { haproxy } = it
      await failToReload(haproxy)
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '60s' })
      expect(member(await drained.done)).toMatchObject(SEALED_IDLE)
      // The next reload works, and forgets the drain.
      await haproxy.reload()
      await until(
        async () => (await haproxy.stat('web', 's1', 'status')) === 'MAINT',
        'the hold is back in the new process',
      )
      await drained.restore()
      expect(await haproxy.mask('web', 's1')).toBe(0)
    },
  )
})

/** Reloads with a configuration that can't be read, until the master has said so. */
async function failToReload(haproxy: Haproxy): Promise<void> {
  const file = join(haproxy.dir, 'haproxy.cfg')
  const good = readFileSync(file, 'utf8')
  appendFileSync(file, '\n  nonsense\n')
  const failed = async (): Promise<boolean> =>
    /master .*\[failed: [1-9]/.test(await cli(haproxy.master, 'show proc;quit').catch(() => ''))
  let askedAt = -Infinity
  await until(async () => {
    // A master that has only just started ignores the signal.
    const [master] = await haproxy.processes()
    if (master !== undefined && performance.now() - askedAt > 3_000) {
      askedAt = performance.now()
      process.kill(master, 'SIGUSR2')
    }
    return failed()
  }, 'the reload has failed')
  writeFileSync(file, good)
}
