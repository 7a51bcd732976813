import type { CallContext, Change, ChangeResult } from 'drainable/provider'
import { DrainableError } from 'drainable/provider'
import { fakeClock } from 'drainable/testing'
import { carefulApply } from '../../../src/kit/careful-apply.js'
import type { CarefulAdapter, SeenMember } from '../../../src/kit/change.js'

/** A balancer as a table of members, with what was sent to it and how often it was looked at. */
export class Rows {
  readonly rows = new Map<string, SeenMember>()
  readonly sent: string[] = []
  looks = 0

  constructor(...members: string[]) {
    for (const member of members) this.rows.set(member, row())
  }

  adapter(more: Partial<CarefulAdapter<SeenMember>> = {}): CarefulAdapter<SeenMember> {
    return {
      provider: 'rows',
      look: () => {
        this.looks += 1
        const rows = new Map(this.rows)
        return Promise.resolve(({ ref }: Change) => rows.get(ref.member))
      },
      hold: async ({ ref, to }) => this.write(ref.member, to),
      restore: async ({ ref, to }) => this.write(ref.member, to),
      terminate: 'there is nothing to cut, wait',
      remove: async ({ ref }) => {
        this.sent.push(`${ref.member} remove`)
        this.rows.delete(ref.member)
      },
      add: async ({ ref, address, port }) => {
        this.sent.push(`${ref.member} add`)
        this.rows.set(ref.member, { ...row(), address, port })
      },
      ...more,
    }
  }

  write(member: string, own: SeenMember['own']): void {
    this.sent.push(`${member} ${own}`)
    this.rows.set(member, { ...(this.rows.get(member) ?? row()), own })
  }

  apply(
    changes: readonly Change[],
    more: Partial<CarefulAdapter<SeenMember>> = {},
    ctx = context(),
  ) {
    return carefulApply(this.adapter(more), changes, ctx)
  }

  async one(change: Change, more: Partial<CarefulAdapter<SeenMember>> = {}): Promise<ChangeResult> {
    const [result] = await this.apply([change], more)
    return result!
  }
}

export function row(more: Partial<SeenMember> = {}): SeenMember {
  return { identity: 'one', own: 'ready', address: '10.0.0.1', port: 80, ...more }
}

export function context(more: Partial<CallContext> = {}): CallContext {
  return { signal: new AbortController().signal, clock: fakeClock(), ...more }
}

export const A = { pool: 'web', member: 'a' }
export const B = { pool: 'web', member: 'b' }
export const hold = (ref = A, to: 'drain' | 'maint' = 'drain') =>
  ({ kind: 'hold', ref, to }) as const
export const restore = (ref = A) =>
  ({ kind: 'restore', ref, expect: 'drain', to: 'ready' }) as const
export const add = (address: string, ref = A) => ({ kind: 'add', ref, address, port: 80 }) as const

export const lost = (): Promise<never> =>
  Promise.reject(new DrainableError('CONNECTION_LOST', 'the answer was lost'))
