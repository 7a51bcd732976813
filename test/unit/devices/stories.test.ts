import { describe, expect, test } from 'vitest'
import { cases } from '../../support/cases.js'
import { PRODUCTS } from '../../model/devices/device.js'
import { playOnDevice } from '../../model/devices/story.js'

/** `npm run soak -- devices` plays more. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8].slice(0, cases(8))

describe.each(PRODUCTS)('on the fake of %s', (product) => {
  test.each(SEEDS)('story %i tells the truth', { timeout: 60_000 }, async (seed) => {
    const { faults } = await playOnDevice(product, seed)
    expect(faults).toEqual([])
  })
})
