import { describe, expect, test } from 'vitest'
import { appliance, ctx, network, provider, seen, useHandWritten } from './hand-written.js'

useHandWritten()

describe('options', () => {
  test.each([
    [{ url: 'adc.example' }, /url: expected an http or https URL/],
    [{ url: 'http://adc.example' }, /credentials would cross the network in the clear/],
    [{ url: 'https://u:p@adc.example' }, /credentials do not belong in the URL/],
    [{ url: [] }, /expected at least one URL/],
    [{ partition: 'p1', auth: 'headers' }, /partition: .*expected auth: 'session'/],
    [{ auth: 'headers', password: ' p' }, /password: begins or ends with a space/],
    [{ auth: 'headers', password: 'p\n' }, /password: begins or ends with a space/],
    [{ auth: 'headers', password: 'p\u0007p' }, /password: has a character that no header has/],
    [{ auth: 'headers', username: 'u ' }, /username: begins or ends with a space/],
    [{ minInterval: 'x' }, /minInterval/],
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

  test('minInterval is the shortest pause between two looks', async () => {
    network.use(appliance())
    await using adc = provider({ minInterval: '3s' })
    const { capabilities } = await adc.describe(ctx)
    expect(capabilities.minInterval).toBe(3_000)
  })

  test('a fetched password with outer spaces is not sent in a header', async () => {
    network.use(appliance())
    await using adc = provider({ auth: 'headers', password: () => 'p ' })
    await expect(adc.describe(ctx)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(seen).toEqual([])
  })
})
