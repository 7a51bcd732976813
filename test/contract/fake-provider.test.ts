import { describe } from 'vitest'
import { contractTests } from '../support/contract.js'
import { openFake } from '../unit/testing/fake-harness.js'
import { SKIPPED } from './skipped/fake-provider.js'

const KINDS = {
  'all that the contract has': {},
  'no maint': { ladder: ['ready', 'drain'], maint: 'none' },
  'no drain, and a maint that cuts': { ladder: ['ready', 'maint'], maint: 'cuts' },
  'no terminate, remove or add': { terminate: false, remove: false, add: false },
  'states that survive a reload': { survivesReload: true },
  'no counts': { counts: 'none', maint: 'unknown', terminate: false, add: false },
} as const

for (const name of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  const capabilities = KINDS[name]
  describe.concurrent(`a provider with ${name}`, () => {
    contractTests(SKIPPED[name], () => openFake({ capabilities }))
  })
}
