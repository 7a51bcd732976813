import { describe, test } from 'vitest'
import { providerContract } from 'drainable/testing'
import { openFake } from '../unit/testing/fake-harness.js'

const KINDS = {
  'all that the contract has': {},
  'no maint': { ladder: ['ready', 'drain'], maint: 'none' },
  'no drain, and a maint that cuts': { ladder: ['ready', 'maint'], maint: 'cuts' },
  'no terminate, remove or add': { terminate: false, remove: false, add: false },
  'states that survive a reload': { survivesReload: true },
  'no counts': { counts: 'none', maint: 'unknown', terminate: false, add: false },
} as const

for (const [name, capabilities] of Object.entries(KINDS)) {
  describe(`a provider with ${name}`, () => {
    for (const c of providerContract(() => openFake({ capabilities }))) {
      test(c.name, { timeout: c.timeout }, c.run)
    }
  })
}
