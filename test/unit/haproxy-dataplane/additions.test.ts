import type { Change } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { context, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const NINE = { pool: 'web', member: 'web9' }

/** As a program without types, or a file, has it. */
const without = (ref: typeof WEB1, address: unknown): Change =>
  ({ kind: 'add', ref, port: 80, ...(address === undefined ? {} : { address }) }) as Change

describe.concurrent.each(['2.9', '3.2', '3.4'])('an addition on %s', (version) => {
  test.each([
    ['no address', undefined, 'found none'],
    ['an address of null', null, 'found none'],
    ['an empty address', '', "found ''"],
    ['two words as its address', '10.0.0.9 check', "found '10.0.0.9 check'"],
  ])(
    'with %s is refused before anything is sent, and names the field',
    async (_, address, found) => {
      for (const membership of ['runtime', 'configuration'] as const) {
        await using r = await rig({ version }, { membership })
        const before = r.fake.config
        const results = await r.lb.apply(
          [
            { kind: 'hold', ref: WEB1, to: 'drain' },
            without(NINE, address),
            without(WEB1, address),
          ],
          context(),
        )
        const refused = {
          status: 'rejected',
          error: {
            code: 'INVALID_OPTIONS',
            message: expect.stringContaining(`address: expected the IP address`) as string,
          },
        }
        expect(results).toMatchObject([{ status: 'applied' }, refused, refused])
        expect(results[1]).toHaveProperty('error.message', expect.stringContaining(found))
        expect(r.fake.requests.some(({ method }) => method === 'POST')).toBe(false)
        expect(r.fake.config).toBe(before)
      }
    },
  )
})
