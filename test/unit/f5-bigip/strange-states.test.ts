/** States in words that no release is known to have: what the device said is told. */
import { ready, startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { rig, until, WEB1 } from './rig.js'

const MEMBER = {
  fullPath: WEB1.member,
  address: '10.0.0.1',
  session: 'hibernating',
  state: 'up',
}

test('why() and ready() tell the words of a strange state', async () => {
  await using it = await rig()
  const body = { kind: 'list', items: [MEMBER] }
  it.fake.fail({ match: /members\?/, how: 'status', status: 200, body })
  const words = `(${WEB1.member}: session hibernating, state up)`
  const run = startDrain(it.lb, WEB1, { timeout: '50s', keepReady: 0 })
  await until('that is why', () => run.why()[0]?.text.includes(words) === true)
  await run.release()
  await run.close()
  await expect(ready(it.lb, WEB1, { timeout: '1s' })).rejects.toThrow(words)
})
