/** States that a server takes from elsewhere: one that it tracks, a name without an address, an agent. */
import { drain, ready, startDrain } from 'drainable'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { type Haproxy, until } from '../../support/haproxy.js'
import { Agent } from '../../support/haproxy-agent.js'
import { lab, type Lab, look, member, site, type Site } from '../../support/haproxy-lab.js'

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  let all: Lab
  let haproxy: Haproxy

  beforeAll(async () => {
    all = await lab({
      engine,
      global: '  stats timeout 30s',
      config: (port) => {
        const web = (name: string, more: Site = {}): string => site(port, name, more)
        return `
resolvers nowhere
  nameserver one 127.0.0.1:${port('dns')}
  hold valid 1s
${web('parent', { s1: 'check inter 100' })}
${web('lonely', { s1: 'check inter 100' })}
backend lonelier
  server c1 127.0.0.1:${port('s1')} track lonely/s1
backend child
  server c1 127.0.0.1:${port('s1')} track parent/s1
  server c2 127.0.0.1:${port('s2')}
${web('head', { s1: 'check inter 100' })}
backend neck
  server c1 127.0.0.1:${port('s1')} track head/s1
  server c2 127.0.0.1:${port('s2')}
backend tail
  server c1 127.0.0.1:${port('s1')} track neck/c1
backend resolved
  server s1 nosuch.invalid:80 resolvers nowhere init-addr none
  server s2 127.0.0.1:${port('s2')}
backend unresolved
  server s1 nosuch.invalid:80 check resolvers nowhere init-addr none
  server s2 127.0.0.1:${port('s2')}
${web('agent', { s1: `agent-check agent-port ${port('agentcheck')} agent-inter 200` })}
${web('drained', { s1: `agent-check agent-port ${port('agentdrains')} agent-inter 2s` })}
${web('again', { s1: `agent-check agent-port ${port('agentagain')} agent-inter 2s` })}
${web('alone', { s1: `agent-check agent-port ${port('agentalone')} agent-inter 200` })}`
      },
    })
    haproxy = all.haproxy
  })

  afterAll(() => all[Symbol.asyncDispose]())

  it.concurrent(
    'followers are named, and an own bit is set under an inherited drain',
    async ({ expect }) => {
      await using lb = all.provider()
      await until(async () => (await look(lb, 'parent')).health === 'up', 'up')
      expect((await look(lb, 'parent')).hints).toEqual([
        'child/c1 tracks it and takes its state too',
      ])
      const parent = startDrain(
        lb,
        { pool: 'parent', member: 's1' },
        { timeout: '10s', seal: false },
      )
      await parent.done
      const child = await look(lb, 'child', 'c1')
      expect(child).toMatchObject({ own: 'ready', inherited: 'drain', serves: false })
      expect(child.hints?.join()).toContain('parent/s1')
      const own = startDrain(lb, { pool: 'child', member: 'c1' }, { timeout: '10s', seal: false })
      expect(member(await own.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      expect(await haproxy.mask('child', 'c1')).toBe(24)
      await parent.restore()
      expect(await haproxy.mask('child', 'c1')).toBe(8)
      await own.restore()
      expect(await haproxy.mask('child', 'c1')).toBe(0)
    },
  )

  it.concurrent(
    'a follower that would leave its backend empty: refused, unless told',
    async ({ expect }) => {
      await using lb = all.provider()
      await until(async () => (await look(lb, 'lonely')).health === 'up', 'up')
      const ref = { pool: 'lonely', member: 's1' }
      const error: unknown = await drain(lb, ref, { timeout: '10s' }).catch(
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
      expect(String(error)).toContain('lonelier/c1')
      expect(await haproxy.mask('lonely', 's1')).toBe(0)
      await using told = all.provider({ keepFollowers: 0 })
      expect(member(await drain(told, ref, { timeout: '10s' }))).toMatchObject({ outcome: 'idle' })
    },
  )

  // HAProxy sets the mask of each of them.
  it.concurrent('a follower of a follower counts too', async ({ expect }) => {
    await using lb = all.provider()
    await until(async () => (await look(lb, 'head')).health === 'up', 'up')
    expect((await look(lb, 'head')).hints).toEqual([
      'neck/c1, tail/c1 track it and take its state too',
    ])
    for (const ref of [
      { pool: 'head', member: 's1' },
      { pool: 'neck', member: 'c1' },
    ]) {
      // Each asks for itself: nothing was learnt by the other.
      await using own = all.provider()
      const error: unknown = await drain(own, ref, { timeout: '10s' }).catch(
        (cause: unknown) => cause,
      )
      expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
      expect(String(error)).toContain('tail/c1')
      expect(await haproxy.mask(ref.pool, ref.member)).toBe(0)
    }
    await using told = all.provider({ keepFollowers: 0 })
    await using drained = startDrain(
      told,
      { pool: 'head', member: 's1' },
      { timeout: '10s', seal: false },
    )
    await drained.done
    expect(await haproxy.mask('tail', 'c1')).toBe(16)
  })

  it.concurrent(
    'a name that does not resolve inherits maint, beside its own state',
    async ({ expect }) => {
      await using lb = all.provider()
      await until(async () => (await haproxy.mask('resolved', 's1')) === 32, 'not resolved')
      expect(await look(lb, 'resolved')).toMatchObject({
        own: 'ready',
        inherited: 'maint',
        serves: false,
      })
      const report = await drain(
        lb,
        { pool: 'resolved', member: 's1' },
        { timeout: '10s', seal: false },
      )
      expect(member(report)).toMatchObject({ outcome: 'idle', wasAdmin: 'ready' })
      expect(await haproxy.mask('resolved', 's1')).toBe(40)
    },
  )

  it.concurrent('an undo does not wait for a check that can not come', async ({ expect }) => {
    await using lb = all.provider()
    const ref = { pool: 'unresolved', member: 's1' }
    await until(async () => (await haproxy.mask(ref.pool, ref.member)) === 32, 'not resolved')
    const drained = startDrain(lb, ref, { timeout: '10s', seal: false })
    await drained.done
    const from = performance.now()
    const report = await drained.restore()
    expect(report.members[0]).toMatchObject({ outcome: 'restored' })
    expect(performance.now() - from).toBeLessThan(5_000)
    expect(await haproxy.mask(ref.pool, ref.member)).toBe(32)
  })

  it.concurrent('an agent that opens the member again is named', async ({ expect }) => {
    await using agent = await Agent.start(haproxy.port('agentcheck'), 'up ready')
    await using lb = all.provider()
    const error: unknown = await drain(
      lb,
      { pool: 'agent', member: 's1' },
      { timeout: '20s' },
    ).catch((cause: unknown) => cause)
    await agent.stop()
    expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
    expect(String(error)).toContain(`its agent at 127.0.0.1:${haproxy.port('agentcheck')}`)
  })

  it.concurrent('an agent that drains the member is named, and left to it', async ({ expect }) => {
    await using agent = await Agent.start(haproxy.port('agentdrains'), 'drain')
    await using lb = all.provider()
    const ref = { pool: 'drained', member: 's1' }
    await until(async () => (await look(lb, 'drained')).own === 'drain', 'drained by its agent')
    const report = await drain(lb, ref, { timeout: '20s', seal: false })
    expect(member(report)).toMatchObject({ outcome: 'idle', wasAdmin: 'drain' })
    const found = await look(lb, 'drained')
    expect(found.setBy).toContain(`its agent at 127.0.0.1:${haproxy.port('agentdrains')}`)
    // HAProxy does what it was told last: the agent drains it again with its next word.
    await ready(lb, ref, { timeout: '5s' })
    await until(async () => (await look(lb, 'drained')).own === 'drain', 'drained once more')
    await agent.stop()
  })

  // HAProxy does not tell what the agent said, nor when it asks it again.
  it.concurrent('ready() says that an agent may drain the server again', async ({ expect }) => {
    await using agent = await Agent.start(haproxy.port('agentagain'), 'drain')
    await using lb = all.provider()
    await until(async () => (await look(lb, 'again')).own === 'drain', 'drained by its agent')
    const opened = await ready(lb, { pool: 'again', member: 's1' }, { timeout: '5s' })
    await agent.stop()
    const words = `its agent at 127.0.0.1:${haproxy.port('agentagain')} sets its state at each check`
    expect(String(opened.members[0]?.hints)).toContain(words)
  })

  it.concurrent(
    'ready() of a server that has only an agent waits for no check',
    async ({ expect }) => {
      await using agent = await Agent.start(haproxy.port('agentalone'), 'up')
      await using lb = all.provider()
      const ref = { pool: 'alone', member: 's1' }
      await using drained = startDrain(lb, ref, { timeout: '20s' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', sealed: true })
      await agent.stop()
      // What it says last stands; a check of HAProxy's own is not to come.
      await ready(lb, ref, { timeout: '20s' })
      expect(await look(lb, 'alone')).toMatchObject({ own: 'ready', serves: true })
    },
  )
})
