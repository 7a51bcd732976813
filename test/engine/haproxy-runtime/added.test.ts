/** Servers that are added at run time. */
import { callContext } from 'drainable/provider'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { freePort } from '../../support/haproxy.js'
import { Agent } from '../../support/haproxy-agent.js'
import { lab } from '../../support/haproxy-lab.js'

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('the agent of an added server is asked', async ({ expect }) => {
    await using at = await lab({ engine })
    await using lb = at.provider()
    const port = await freePort()
    const asked = Agent.start(port, 'up')
    const ref = { pool: 'web', member: 'new' }
    const keywords = `agent-check agent-port ${port} agent-inter 100ms`
    const where = { address: '127.0.0.1', port: at.haproxy.port('s1') }
    const add = { kind: 'add', ref, ...where, native: { keywords } } as const
    expect(await lb.apply([add], callContext())).toEqual([{ ref, status: 'applied' }])
    await using agent = await asked
    expect(agent).toBeInstanceOf(Agent)
  })
})
