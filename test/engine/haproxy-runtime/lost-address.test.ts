/** A server whose name does not resolve any more, met by a new process: it is the server that was there before. */
import { drain, restore, resumeDrain, startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, it } from 'vitest'
import { engines, type Engine } from '../../support/engines.js'
import { Haproxy, until } from '../../support/haproxy.js'
import { busyAtIdle, member } from '../../support/haproxy-lab.js'
import { Tunnel } from '../../support/haproxy-traffic.js'
import { Named, NAMED, NAMED_SERVER, UNRESOLVED } from '../../support/named-server.js'

const POLICY = { timeout: '60s', keepReady: 0, seal: false } as const

async function stage(engine: Engine) {
  const haproxy = await Haproxy.start({ engine, config: NAMED })
  const named = await Named.start(haproxy)
  return {
    haproxy,
    named,
    connect: () => haproxyRuntime({ socket: haproxy.socket, master: haproxy.master }),
    async [Symbol.asyncDispose]() {
      await named[Symbol.asyncDispose]()
      await haproxy[Symbol.asyncDispose]()
    },
  }
}

/** A drain whose process has left it, and whose server has lost its address since. */
async function left({ haproxy, named, connect }: Awaited<ReturnType<typeof stage>>) {
  await using lb = connect()
  const tunnel = await Tunnel.websocket(haproxy.port('web'))
  const run = startDrain(lb, NAMED_SERVER, POLICY)
  await until(async () => (await named.mask()) === 0x08, 'drained')
  const ticket = await run.ticket
  await run.release()
  await named.lose()
  return { ticket, tunnel }
}

describe.each(engines('haproxy'))('HAProxy $version', (engine) => {
  it.concurrent('a restore opens it: it serves once its name resolves', async ({ expect }) => {
    await using all = await stage(engine)
    const { ticket, tunnel } = await left(all)
    await using lb = all.connect()
    const report = await restore(lb, ticket)
    await tunnel[Symbol.asyncDispose]()
    expect(member(report)).toMatchObject({ outcome: 'restored' })
    expect(await all.named.mask()).toBe(UNRESOLVED)
    await all.named.find()
    expect(await all.named.mask()).toBe(0)
  })

  it.concurrent('a resume waits for its work', async ({ expect }) => {
    await using all = await stage(engine)
    const { ticket, tunnel } = await left(all)
    await using lb = all.connect()
    await using run = resumeDrain(lb, ticket)
    const busy = busyAtIdle(run, all.named.server)
    await until(() => run.why().some(({ count }) => count === 1), 'it is counted')
    await tunnel[Symbol.asyncDispose]()
    expect(member(await run.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(busy()).toBe(0)
    expect((await run.restore()).outcome).toBe('restored')
    await all.named.find()
    expect(await all.named.mask()).toBe(0)
  })

  it.concurrent('a drain that begins then goes on when its name resolves', async ({ expect }) => {
    await using all = await stage(engine)
    await using tunnel = await Tunnel.websocket(all.haproxy.port('web'))
    await all.named.lose()
    await using lb = all.connect()
    await using run = startDrain(lb, NAMED_SERVER, POLICY)
    await until(async () => ((await all.named.mask()) & 0x08) !== 0, 'drained')
    await until(() => run.why().some(({ count }) => count === 1), 'it is counted')
    await all.named.find()
    await tunnel[Symbol.asyncDispose]()
    expect(member(await run.done)).toMatchObject({ outcome: 'idle' })
    expect((await run.restore()).outcome).toBe('restored')
    expect(await all.named.mask()).toBe(0)
    expect(member(await drain(lb, NAMED_SERVER, POLICY))).toMatchObject({ outcome: 'idle' })
  })
})
