/** A process that drains is killed where it touches the world; another one goes on from its ticket. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cases, casesOf } from '../../../support/cases.js'
import { Children } from '../../../support/kills/children.js'
import { killEverywhere, PLANS } from '../../../support/kills/plans.js'

/** Of each story, in CI. All of them: `npm run soak -- kills`. */
const MOST = 26

let children: Children

beforeAll(async () => {
  children = await Children.open()
})

afterAll(() => children[Symbol.asyncDispose]())

test.for(PLANS)(
  `$story: ${casesOf(MOST)} kills leave what another can finish`,
  { timeout: 180_000 },
  async (plan) => {
    const { planned, killed, broken } = await killEverywhere(plan, children, cases(MOST))
    expect(broken).toEqual([])
    // Of the few outside of CI one may miss.
    expect(killed).toBeGreaterThanOrEqual(Math.min(planned - 1, Math.ceil(planned * 0.8)))
  },
)
