/** States in words that no build is known to have: what the appliance said is told. */
import { ready, startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { rig, WEB1 } from './rig.js'

const BINDING = 'servicegroup_servicegroupmember_binding'

test('why() and ready() tell the words of a strange state', async () => {
  await using at = await rig()
  const { fake, adc } = at
  const row = { servicegroupname: 'web', ip: '10.0.0.1', servername: '10.0.0.1', port: 80 }
  const rows = [{ ...row, svrstate: 'HIBERNATING', state: 'ENABLED' }]
  fake.fail({
    match: new RegExp(BINDING),
    how: 'status',
    status: 200,
    body: { errorcode: 0, [BINDING]: rows },
  })
  const words = "(svrstate 'HIBERNATING')"
  const run = startDrain(adc, WEB1, { timeout: '50s', keepReady: 0 })
  await eventually(() => {
    expect(run.why()[0]?.text).toContain(words)
  })
  await run.release()
  await run.close()
  await expect(ready(adc, WEB1, { timeout: '1s' })).rejects.toThrow(words)
})
