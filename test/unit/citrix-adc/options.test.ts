import { describe, expect, test } from 'vitest'
import { provider, useHandWritten } from './hand-written.js'

useHandWritten()

describe('options', () => {
  test.each([
    [{ url: 'adc.example' }, /url: expected an http or https URL/],
    [{ url: 'http://adc.example' }, /credentials would cross the network in the clear/],
    [{ url: 'https://u:p@adc.example' }, /credentials do not belong in the URL/],
    [{ url: [] }, /expected at least one URL/],
    [{ partition: 'p1', auth: 'headers' }, /partition: .*expected auth: 'session'/],
    [{ sessionTimeout: '1m' }, /sessionTimeout/],
    [{ pasword: 'x' }, /unknown option 'pasword'/],
    [{ tls: { cert: 'x' } }, /cert and key go together/],
    [{ dispatcher: {} }, /expected a dispatcher/],
  ])('%j is refused', (options, message) => {
    expect(() => provider(options as never)).toThrow(message)
  })

  test('the instance names addresses and partition, and no user', () => {
    const { instance } = provider({ url: ['https://a', 'https://b/adm'], partition: 'p1' })
    expect(instance).toBe('https://a,https://b/adm#p1')
  })
})
