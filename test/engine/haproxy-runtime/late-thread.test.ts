/** A thread of HAProxy is late, and a request that it holds is in no counter until it runs. */
import { setTimeout as pass } from 'node:timers/promises'
import { startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { systemClock } from '../../../src/provider/clock.js'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { member, SEALED_IDLE, untilOldWorker, web1 } from '../../support/haproxy-lab.js'
import { LateThread } from '../../support/haproxy-late.js'
import { request } from '../../support/haproxy-traffic.js'

/** A little longer than the quiet time, ms: from then on zeros alone decide. */
const QUIET = 1_300

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a queued request whose thread is late is waited for', async ({ expect }) => {
    await using it = await LateThread.start({ engine, s1: 'maxconn 1' })
    const s1 = await it.startS1()
    const running = request(it.haproxy.port('first'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    const queued = request(it.haproxy.port('second'), '/', { cookie: 's1' })
    await until(async () => (await it.stat('web', 's1', 'qcur')) === '1', 'queued')
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let seenAtIdle = -1
    drained.on('idle', () => (seenAtIdle = s1.total))
    await drained.inForce
    await pass(QUIET)
    const pieces = await it.pieces(3)
    await pieces.begin()
    s1.release()
    const report = await drained.done
    expect((await queued).server).toBe('s1')
    await Promise.all([running, pieces.over])
    expect(seenAtIdle).toBe(2)
    expect(member(report)).toMatchObject(SEALED_IDLE)
  })

  // HAProxy has not named its server yet.
  it.concurrent(
    'a request that left the queue of the backend is waited for',
    async ({ expect }) => {
      await using it = await LateThread.start({
        engine,
        s1: 'maxconn 1',
        global: '  tune.runqueue-depth 1', // it runs after all pieces
      })
      const s1 = await it.startS1()
      await it.cli('set server web/s2 state maint')
      const running = request(it.haproxy.port('first'), '/hold')
      await until(() => s1.active === 1, 'in flight')
      const queued = request(it.haproxy.port('second'), '/')
      await until(async () => (await it.stat('web', 'BACKEND', 'qcur')) === '1', 'queued')
      await using lb = it.provider()
      const pieces = await it.pieces(16)
      await pieces.begin()
      s1.release()
      await until(async () => (await it.stat('web', 'BACKEND', 'qcur')) === '0', 'it has its slot')
      await using drained = startDrain(lb, web1, { timeout: '60s', keepReady: 0 })
      let seenAtIdle = -1
      drained.on('idle', () => (seenAtIdle = s1.total))
      await drained.done
      expect((await queued).server).toBe('s1')
      await Promise.all([running, pieces.over])
      expect(seenAtIdle).toBe(2)
    },
  )

  it.concurrent(
    "a request that got another server's slot is not waited for",
    async ({ expect }) => {
      await using it = await LateThread.start({
        engine,
        s1: 'maxconn 1',
        s2: 'maxconn 1',
        global: '  tune.runqueue-depth 1', // it runs after the piece
      })
      await it.startS1()
      await it.cli('set server web/s1 state drain')
      const running = request(it.haproxy.port('first'), '/hold')
      await until(() => it.s2.active === 1, 'in flight')
      const queued = request(it.haproxy.port('second'), '/')
      await until(async () => (await it.stat('web', 'BACKEND', 'qcur')) === '1', 'queued')
      await using lb = it.provider()
      const pieces = await it.pieces(1)
      await pieces.begin()
      it.s2.release()
      await until(async () => (await it.stat('web', 'BACKEND', 'qcur')) === '0', 'it has its slot')
      const ctx = { signal: AbortSignal.timeout(10_000), clock: systemClock }
      // One list can't tell whose slot it is; the next ones show that it is over.
      await until(async () => {
        const { readings } = await lb.observe([web1], ctx)
        return readings[0]?.scopes[0]?.queued === 0
      }, 'it does not count')
      expect((await queued).server).toBe('s2')
      await Promise.all([running, pieces.over])
    },
  )

  it.concurrent('a queued request of an old worker is waited for', async ({ expect }) => {
    await using it = await LateThread.start({ engine, s1: 'maxconn 1' })
    const s1 = await it.startS1()
    const running = request(it.haproxy.port('first'), '/hold', { cookie: 's1' })
    await until(() => s1.active === 1, 'in flight')
    const queued = request(it.haproxy.port('second'), '/', { cookie: 's1' })
    await until(async () => (await it.stat('web', 's1', 'qcur')) === '1', 'queued')
    await using lb = it.provider({ oldWorkers: 'accept' })
    await using drained = startDrain(lb, web1, { timeout: '60s' })
    let seenAtIdle = -1
    drained.on('idle', () => (seenAtIdle = s1.total))
    await drained.inForce
    const pieces = await it.pieces(3)
    await it.haproxy.reload()
    const old = await until(async () => (await it.haproxy.oldWorkers())[0], 'an old worker')
    await untilOldWorker(drained)
    await pass(QUIET)
    await pieces.begin(old)
    s1.release()
    const report = await drained.done
    expect((await queued).server).toBe('s1')
    await Promise.all([running, pieces.over])
    expect(seenAtIdle).toBe(2)
    expect(member(report).outcome).toBe('idle')
  })

  it.concurrent('a retry whose thread is late is waited for', async ({ expect }) => {
    await using it = await LateThread.start({ engine })
    await using lb = it.provider()
    const pieces = await it.pieces(10)
    await using drained = startDrain(lb, web1, { timeout: '60s', seal: false })
    await drained.inForce
    const answer = request(it.haproxy.port('second'), '/', { cookie: 's1' })
    await until(async () => (await it.stat('web', 's1', 'wretr')) !== '0', 'refused once')
    const s1 = await it.startS1()
    let seenAtIdle = -1
    drained.on('idle', () => (seenAtIdle = s1.total))
    await pass(600)
    await pieces.begin()
    const report = await drained.done
    expect((await answer).server).toBe('s1')
    await pieces.over
    expect(seenAtIdle).toBe(1)
    expect(member(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })
})
