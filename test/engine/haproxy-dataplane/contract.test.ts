import type { ContractHarness } from 'drainable/testing'
import { describe } from 'vitest'
import { contractTests } from '../../support/contract.js'
import { front, pairs, WEB } from '../../support/dataplane-front.js'
import { connect } from '../../support/dataplane.js'
import type { Engine } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { SKIPPED } from '../../contract/skipped/haproxy-dataplane.js'

async function open(engine: Engine, api: string): Promise<ContractHarness> {
  const rig = await front(engine, api)
  const [a, b, c] = WEB.map((member) => ({ pool: 'web', member }))
  return {
    provider: rig.lb,
    pool: 'web',
    members: [a!, b!, c!],
    occupy: async (ref) => {
      const { answer } = await rig.hold(ref)
      return async () => {
        rig.backends[ref.member]!.release(1)
        await answer
      }
    },
    setBehind: async (ref, to) => {
      await rig.fake.setBehind(ref, to)
      if (to !== 'gone') return
      // 2.6 counts connections that have just ended
      const at = `${ref.pool}/${ref.member}`
      await until(async () => {
        const reply = await rig.haproxy.cli(`del server ${at}`)
        return /No such server|deleted/.test(reply)
      }, `${at} is deleted`)
    },
    reload: () => rig.fake.reload(),
    disconnect: () => rig.fake.close(),
    loseAnswer: async () => {
      rig.fake.fail({ match: /^PUT /, how: 'reset', execute: true, times: 1 })
    },
    damage: async (how) => rig.fake.fail({ how }),
    refuseChange: async (nth) =>
      rig.fake.fail({ match: /^(PUT|POST|DELETE) /, how: 'status', skip: nth, times: 1 }),
    sockets: () => rig.fake.sockets,
    secrets: () => [Buffer.from('admin:secret').toString('base64')],
    stranger: () => {
      const password = 'not-the-password'
      return { provider: connect(rig.fake, { password }), password }
    },
    requests: () => rig.fake.requests.length,
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  }
}

// real connections through a real HAProxy, seen through the API's stand-in
describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'Data Plane API $api before HAProxy $engine.version',
  (pair) => {
    contractTests(SKIPPED.engine, () => open(pair.engine, pair.api))
  },
)
