import { describe, it } from 'vitest'
import { playLease } from '../../../model/lease-story.js'

describe('contenders for one lease', () => {
  it('never act after another one got it, in random stories', async ({ expect }) => {
    const stories = []
    for (let seed = 1; seed <= 40; seed += 1) stories.push({ seed, ...(await playLease(seed)) })
    expect(stories.filter(({ faults }) => faults.length > 0)).toEqual([])
    // A story in which nobody leads, or nobody ever loses the lease, shows nothing.
    expect(stories.every(({ acts }) => acts > 10)).toBe(true)
    expect(stories.reduce((sum, { terms }) => sum + terms, 0)).toBeGreaterThan(100)
  })
})
