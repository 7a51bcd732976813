import { Children } from '../../test/support/kills/children.ts'
import { killEverywhere, PLANS } from '../../test/support/kills/plans.ts'

/** Kills a process at every point of every story, or of those with a name. @returns whether nothing was found */
export async function killAll(only: string, say: (line: string) => void): Promise<boolean> {
  const startedAt = performance.now()
  await using children = await Children.open()
  let kills = 0
  let faults = 0
  for (const plan of PLANS.filter(({ story }) => story.includes(only))) {
    const began = performance.now()
    const { planned, killed, broken } = await killEverywhere(plan, children)
    kills += killed
    faults += broken.length
    const took = ((performance.now() - began) / 1_000).toFixed(1)
    say(`${plan.story}: ${killed} of ${planned} killed, ${took} s`)
    for (const what of broken) say(`  ${what}`)
  }
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`${kills} kills in ${took} s; ${faults} rules broken`)
  return faults === 0
}
