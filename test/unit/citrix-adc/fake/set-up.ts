import { startFake, type CitrixFake, type FakeOptions } from 'drainable/testing/citrix-adc'

export const WEB1 = { pool: 'web', member: 'web1:80' }
export const MEMBERS = 'GET /config/servicegroup_servicegroupmember_binding/web'
export const DISABLE = 'POST /config/servicegroup?action=disable'

export function start(options: FakeOptions = {}): Promise<CitrixFake> {
  return startFake({ tls: false, tick: 20, ...options })
}
