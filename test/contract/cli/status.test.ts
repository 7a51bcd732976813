import { describe, expect, test } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { EXIT } from '../../../src/cli/exit-code.js'
import { TestIo } from '../../support/command.js'
import { haproxyUrl } from '../../support/haproxy-url.js'

describe('what a target hits', () => {
  test.each([[[]], [['web/']]])('is compared with --expect by a status of %j', async (target) => {
    await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
    using io = new TestIo()
    const given = [haproxyUrl(fake), ...target, '--expect', '5']
    const { exitCode, error } = await io.document('status', ...given)
    expect([exitCode, error?.code]).toEqual([EXIT.refused, 'REJECTED'])
  })

  test.each(['status', 'plan', 'drain', 'ready'])(
    'is missing where no member has the address: %s',
    async (verb) => {
      await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
      using io = new TestIo()
      const { exitCode, error } = await io.document(verb, haproxyUrl(fake), '10.9.9.9')
      expect([exitCode, error?.code]).toEqual([EXIT.missing, 'NOT_FOUND'])
      expect(error?.message).toContain('no member has address 10.9.9.9')
    },
  )
})
