import type { Change, ChangeResult } from 'drainable'
import type { Call } from '../user/drain-call.js'
import type { ModelProvider } from '../world/model-provider.js'
import type { UserProcess } from '../user/user-process.js'

/** One change that a user process sent, and what became of it. */
export interface SentChange {
  readonly number: number
  readonly key: string
  readonly change: Change
  readonly process: UserProcess
  readonly provider: ModelProvider
  readonly sentAt: number
  /** When the newest look was read that its sender had been given. */
  readonly knownUntil: number
  /** Ids of the drains (one per ticket) that can have asked for it. */
  readonly authors: ReadonlySet<string>
  /** Calls of its provider object that can have asked for it. */
  readonly candidates: readonly Call[]
  /** Whether a `ready()` is among them. */
  readonly byReady: boolean
  /** `open`: not known yet. `lost`: the library can't know. */
  answer: 'open' | 'told' | 'lost'
  /** Whether the library knows by now (answered), or will never. */
  answeredAt: number
  executedAt: number
  effect: ChangeResult['status'] | undefined
  /** Of a hold: whether what it finds can't be told from what its sender set before, or may have. */
  alike: boolean
}
