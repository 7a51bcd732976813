/** All points: `npm run soak -- envoy-fleet`. */
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { startFleet } from '../../support/envoy/fleet-kills.js'

const versions = engines('envoy')
const newest = versions.at(-1)

const POINTS = [
  ['after a publication', false],
  ['idle', false],
  // The ticket alone knows of it.
  ['idle', true],
] as const

describe.each(versions)('a killed controller of Envoy $version', ({ path }) => {
  test.concurrent(
    'no request reaches a member that was called idle',
    async () => {
      await using fleet = await startFleet(path)
      for (const [killAt, isFresh] of path === newest?.path ? POINTS : POINTS.slice(-1)) {
        const story = await fleet.play(killAt, isFresh)
        expect(story.at).toContain(killAt)
        expect(story.faults).toEqual([])
        expect(story.outcomes.join()).toMatch(/^outcome removed/)
      }
    },
    240_000,
  )
})
