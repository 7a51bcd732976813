/** A short pool name is resolved beside a member alone: a pool by itself is asked for by its full path, and errors say which. */
import { drain, isDrainableError, plan, roll, select, watch } from 'drainable'
import type { DrainableProvider } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { rig } from './rig.js'

const POLICY = { timeout: '30s' } as const

const VERBS: readonly (readonly [string, (lb: DrainableProvider, pool: string) => unknown])[] = [
  ['select', (lb, pool) => select(lb, { pool })],
  ['watch', async (lb, pool) => Promise.reject((await watch(lb, { pool }).done).error ?? 'none')],
  ['plan', (lb, pool) => plan(lb, { pool }, POLICY)],
  ['drain', (lb, pool) => drain(lb, { pool }, POLICY)],
  ['roll', (lb, pool) => roll(lb, { pool }, { ...POLICY, act: async () => undefined })],
]

async function refusal(call: () => unknown): Promise<string> {
  try {
    await call()
    return 'not refused'
  } catch (error) {
    return isDrainableError(error, 'NOT_FOUND') ? error.message : String(error)
  }
}

describe('a pool by its short name', () => {
  test.each(VERBS)('is refused by %s with its full path', async (_, call) => {
    await using it = await rig({ pools: { web: ['10.0.0.1:80'], api: ['10.0.0.2:80'] } })
    expect(await refusal(() => call(it.lb, 'web'))).toContain("did you mean '/Common/web'?")
  })

  test('of several partitions is refused with the full path of each', async () => {
    const pools = { '/Common/web': ['10.0.0.1:80'], '/Edge/web': ['10.0.0.2:80'] }
    await using it = await rig({ pools })
    const words = await refusal(() => select(it.lb, { pool: 'web' }))
    expect(words).toContain("did you mean '/Common/web', '/Edge/web'?")
  })
})
