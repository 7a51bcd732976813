/**
 * A loop of the caller's own, as the docs show it: plan, carry out, do not wait. Random desired sets,
 * reloads and operators; in the end everything is as wished, and only what is ours was touched.
 */
import fc from 'fast-check'
import { carryOut } from 'drainable'
import { planChanges, type DesiredMember } from 'drainable/endpoints'
import { callContext, type MemberRef, type PoolReading, type Snapshot } from 'drainable/provider'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, test } from 'vitest'

const OURS = ['ctl-1', 'ctl-2', 'ctl-3', 'ctl-4']
const STRANGERS = ['vm-1', 'backup']
const web = (member: string): MemberRef => ({ pool: 'web', member })

type Event =
  | { readonly kind: 'wish'; readonly wanted: readonly DesiredMember['state'][] }
  | { readonly kind: 'reload' }
  | { readonly kind: 'operator'; readonly member: string; readonly to: 'ready' | 'drain' | 'maint' }
  | { readonly kind: 'work'; readonly member: string }

const events: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    kind: fc.constant('wish' as const),
    wanted: fc.array(fc.constantFrom('serve' as const, 'drain' as const, 'absent' as const), {
      minLength: OURS.length,
      maxLength: OURS.length,
    }),
  }),
  fc.constant({ kind: 'reload' as const }),
  fc.record({
    kind: fc.constant('operator' as const),
    member: fc.constantFrom(...OURS),
    to: fc.constantFrom('ready' as const, 'drain' as const, 'maint' as const),
  }),
  fc.record({ kind: fc.constant('work' as const), member: fc.constantFrom(...OURS) }),
)

describe('a loop over plans', () => {
  test('ends in the desired state, and touches no member of others', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(events, { minLength: 1, maxLength: 6 }), async (happens) => {
        const clock = fakeClock()
        const lb = fakeProvider({ pools: { web: [...OURS, ...STRANGERS], api: ['z'] }, clock })
        const context = callContext({ clock })
        const { capabilities } = await lb.describe(context)
        const addresses = new Map<string, { address: string; port: number }>()
        for (const reading of (await lb.observe('all', context)).readings) {
          const { ref } = reading
          if (!reading.present || reading.address === undefined) continue
          addresses.set(ref.member, { address: reading.address, port: reading.port ?? 80 })
        }
        let wanted: readonly DesiredMember['state'][] = OURS.map(() => 'serve')
        const running: Promise<unknown>[] = []
        const pass = async (): Promise<number> => {
          const desired = OURS.map((member, i): DesiredMember => {
            const at = addresses.get(member)
            return { pool: 'web', member, ...at, state: wanted[i] ?? 'serve' }
          })
          const plan = planChanges(desired, await lb.observe('all', context), {
            pools: ['web'],
            owns: ({ ref }) => ref.member.startsWith('ctl-'),
            capabilities,
            idle: () => true,
          })
          running.push(carryOut(lb, plan, { clock, timeout: '20s' }))
          return plan.changes.length
        }
        const ends: (() => void)[] = []
        for (const event of happens) {
          if (event.kind === 'wish') wanted = event.wanted
          else if (event.kind === 'reload') lb.reload()
          else if (lb.state(web(event.member)) === 'gone') continue
          else if (event.kind === 'work') ends.push(lb.occupy(web(event.member)))
          else lb.setBehind(web(event.member), event.to)
          await pass()
          await clock.advance(300)
        }
        for (const end of ends) end()
        for (let i = 0; i < 8 && (await pass()) > 0; i++) await clock.advance(30_000)
        await clock.runUntil(Promise.all(running))

        expect(await pass()).toBe(0)
        for (const [i, member] of OURS.entries()) {
          const state = lb.state(web(member))
          if (wanted[i] === 'serve') expect(state).toBe('ready')
          if (wanted[i] === 'drain') expect(['drain', 'maint', 'gone']).toContain(state)
          if (wanted[i] === 'absent') expect(state).toBe('gone')
        }
        const touched = lb.requests.flatMap(({ changes = [] }) => changes.map(({ ref }) => ref))
        for (const { pool, member } of touched) {
          expect(pool).toBe('web')
          expect(OURS).toContain(member)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('keeps the last member when there is no other, and says why', async () => {
    const clock = fakeClock()
    const lb = fakeProvider({ pools: { web: ['ctl-1', 'ctl-2'] }, clock })
    const context = callContext({ clock })
    const serving = (snapshot: Snapshot): PoolReading | undefined => snapshot.pools[0]
    for (let i = 0; i < 3; i++) {
      const desired = ['ctl-1', 'ctl-2'].map((member) => ({
        pool: 'web',
        member,
        state: 'drain' as const,
      }))
      const plan = planChanges(desired, await lb.observe('all', context), {
        pools: ['web'],
        owns: () => true,
      })
      await clock.runUntil(carryOut(lb, plan, { clock }))
      expect(plan.held.at(-1)?.reason).toContain('keepReady is 1')
      expect(serving(await lb.observe('all', context))?.serving).toBe(1)
    }
  })
})
