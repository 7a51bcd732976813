import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { expect, test } from 'vitest'
import { WEB1 } from './rig.js'

test('work in a process without a master that was given up is not called ended', async () => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
  await using lb = haproxyRuntime({ socket: fake.socket, oldWorkers: 'accept' })
  const end = await fake.occupy(WEB1)
  await using run = startDrain(lb, WEB1, { timeout: '60s' })
  await expect.poll(() => run.why().map(({ code }) => code)).toContain('in-flight')
  await fake.reload()
  const [member] = (await run.done).members
  expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: false })
  expect(member!.lost).toMatchObject([{ active: 1, note: "given up by oldWorkers: 'accept'" }])
  const why = member!.why.map(({ text }) => text).join()
  expect(why).toContain('nothing tells what became of that work')
  expect(why).not.toContain('finished unseen')
  await end()
})
