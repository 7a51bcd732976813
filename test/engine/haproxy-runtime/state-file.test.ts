/** What is said of a state file: without one in force, a reload opens a drained server for a moment. */
import { plan, startDrain } from 'drainable'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { type Config, lab, site, web1, work } from '../../support/haproxy-lab.js'

const WITH_FILE: Config = (port) =>
  site(port, 'web', { backend: '  load-server-state-from-file global' })
const NONE = 'no state file is in force'

describe.each(engines('haproxy'))('a state file of HAProxy $version', (engine) => {
  it.concurrent('is not known beforehand, and plan() says so', async ({ expect }) => {
    await using it = await lab({ engine })
    await using lb = it.provider()
    const { notes } = await plan(lb, web1)
    expect(notes?.[0]).toMatch(/^HAProxy does not tell whether a state file is in force/)
  })

  it.concurrent(
    'that is missing is named by why() and plan() after a reload',
    async ({ expect }) => {
      await using it = await lab({ engine })
      const working = await work(it)
      await using lb = it.provider()
      await using drained = startDrain(lb, web1, { timeout: '30s' })
      await drained.inForce
      await until(() => drained.why().some(({ code }) => code === 'in-flight'), 'it waits')
      expect(String(drained.why().map(({ text }) => text))).not.toContain(NONE)
      await it.haproxy.reload()
      await until(() => drained.why().some(({ text }) => text.includes(NONE)), 'why() says it')
      expect(String((await plan(lb, web1)).notes)).toContain(NONE)
      await working.end()
      await drained.done
    },
  )

  it.concurrent('that is missing is named of a drain that is held', async ({ expect }) => {
    await using it = await lab({ engine })
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    await drained.done
    expect(drained.why()).toEqual([])
    await it.haproxy.reload()
    const opened = () => drained.why().find(({ text }) => text.includes(NONE))
    await until(() => opened() !== undefined, 'why() says it')
    expect(opened()?.hint).toMatch(/server-state-file .* load-server-state-from-file/)
  })

  it.concurrent('that is in force is not asked for', async ({ expect }) => {
    const global = '  server-state-file state'
    await using it = await lab({ engine, config: WITH_FILE, global })
    const working = await work(it)
    await using lb = it.provider()
    await using drained = startDrain(lb, web1, { timeout: '30s' })
    await drained.inForce
    await until(() => drained.why().some(({ code }) => code === 'in-flight'), 'it waits')
    await it.haproxy.keepState()
    await it.haproxy.reload()
    await until(() => drained.why().some(({ code }) => code === 'old-scope'), 'it waits on')
    expect(String(drained.why().map(({ text }) => text))).not.toContain(NONE)
    await working.end()
    await drained.done
  })
})
