import { expect, test } from 'vitest'
import { findOut } from '../../../model/chunk.js'
import { LIES } from '../../../model/world/product.js'

test.each(LIES)(
  'the judge catches a balancer that lies about %s',
  { timeout: 120_000 },
  async (lie) => {
    expect(await findOut(lie, 1_000)).toBeDefined()
  },
)
