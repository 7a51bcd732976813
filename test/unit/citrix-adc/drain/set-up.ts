import type { CitrixAdcOptions } from 'drainable/citrix-adc'
import type { CitrixFake, FakeOptions } from 'drainable/testing/citrix-adc'
import { rig, type Rig } from '../rig.js'

export { WEB1, WEB2 } from '../rig.js'
export const SVC1 = { pool: 'vs', member: 'svc1' }

/** The same appliance, with a vserver and its services too. */
export async function setup(
  fakeOptions: FakeOptions = {},
  options: Partial<CitrixAdcOptions> = {},
): Promise<Rig> {
  const vservers = { vs: [{ name: 'svc1', address: '10.0.0.1' }, 'svc2'] }
  return rig({ vservers, ...fakeOptions }, options)
}

/** What was sent to change something. */
export function actions(fake: CitrixFake): readonly { line: string; body: unknown }[] {
  return fake.requests
    .filter(({ line }) => /action=(disable|enable|save)/.test(line))
    .map(({ line, body }) => ({ line: line.replace(/^POST \/nitro\/v1\/config\//, ''), body }))
}

export const DISABLE = {
  line: 'servicegroup?action=disable&warning=yes',
  body: {
    servicegroup: {
      servicegroupname: 'web',
      servername: '10.0.0.1',
      port: 80,
      delay: 0,
      graceful: 'YES',
    },
  },
}
