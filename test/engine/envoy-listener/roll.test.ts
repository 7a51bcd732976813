import { describe, expect, test } from 'vitest'
import { roll } from 'drainable'
import { envoyListener } from 'drainable/envoy-listener'
import { engines } from '../../support/engines.js'
import { startGateway, type Gateway } from '../../support/envoy-gateway.js'
import { ask } from '../../support/envoy/client.js'
import { delay, until } from '../../support/wait.js'

/** A balancer in front: it asks each gateway for its health and sends requests where it is good. */
function startFront(gateways: readonly Gateway[]) {
  const errors: string[] = []
  let sent = 0
  let isOver = false
  const isDone = (): boolean => isOver
  const clients = gateways.map(async ({ proxy }) => {
    while (!isDone()) {
      const check = await ask(proxy.http, '/healthz').catch(() => undefined)
      if (check?.status === 200) {
        const answer = await ask(proxy.http).catch((error: unknown) => error)
        const isGood = typeof answer === 'object' && answer !== null && 'status' in answer
        // A gateway that restarts between check and request was idle: the action below sees to that.
        if (!isGood || answer.status !== 200) errors.push(String(answer))
        sent += 1
      }
      await delay(5)
    }
  })
  return {
    errors,
    sent: () => sent,
    [Symbol.asyncDispose]: async () => {
      isOver = true
      await Promise.all(clients)
    },
  }
}

describe.each(engines('envoy'))('a roll over gateways of Envoy $version', ({ path }) => {
  test('gateways restart once idle, one at a time, and no request fails', async () => {
    const gateways = await Promise.all([1, 2, 3].map(() => startGateway(path)))
    try {
      const admin = gateways.map(({ proxy }) => proxy.admin)
      await using lb = envoyListener({ admin, noticed: { checks: 3 } })
      await using front = startFront(gateways)
      const out: string[] = []
      const found = (member: string) =>
        gateways.find(({ proxy }) => proxy.admin.endsWith(`/${member}`))
      const check = (member: string) =>
        ask(found(member)?.proxy.http ?? 0, '/healthz').catch(() => undefined)
      let at = 0
      let most = 0
      const report = await roll(
        lb,
        { pool: 'envoy' },
        {
          group: 'ref',
          timeout: '30s',
          // Nothing in Envoy checks whether it serves: the one in front does.
          waitHealthy: async ({ member }) => {
            await until(async () => (await check(member))?.status === 200, 'a healthy gateway')
          },
          act: async ({ ref }) => {
            most = Math.max(most, (at += 1))
            out.push(ref.member)
            await found(ref.member)?.proxy.restart()
            at -= 1
          },
        },
      )
      expect(report.servers.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done'])
      expect(out.toSorted()).toEqual(admin.map((url) => url.replace('http://', '')).toSorted())
      expect(most).toBe(1)
      expect(front.errors).toEqual([])
      expect(front.sent()).toBeGreaterThan(10)
    } finally {
      for (const gateway of gateways) await gateway[Symbol.asyncDispose]()
    }
  })
})
