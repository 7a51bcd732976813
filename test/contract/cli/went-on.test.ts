/** A drain that goes on without a balancer that did not answer in its time. */
import { expect, test } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { EXIT } from '../../../src/cli/exit-code.js'
import { TestIo } from '../../support/command.js'
import { haproxyUrl } from '../../support/haproxy-url.js'

const AT_ONCE = ['--timeout', '0', '--on-timeout', 'proceed', '--on-unreachable', 'wait']
const COMMAND = ['--', process.execPath, '-e', '0']

test.each(['web/web1', 'web/'])(
  'says so, and opens nothing that it did not take: %s',
  async (on) => {
    await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
    using io = new TestIo()
    const { code, out } = await io.play('drain', haproxyUrl(fake), on, ...AT_ONCE, ...COMMAND)
    expect(code).toBe(EXIT.cut)
    expect(out).toContain('this drain changed nothing')
    expect(out).not.toContain('left as it was found')
  },
)
