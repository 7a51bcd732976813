import type { DrainableProvider } from '../../provider/contract.js'
import { resumeCombined } from '../combined/drain.js'
import { partsOf } from '../combined/parts.js'
import type { DrainEvent } from '../events.js'
import { DrainHandle, EventHub, type Drain } from '../runner/handle.js'
import type { Ticket } from '../tickets/ticket.js'
import { resumedRun } from './drain-run.js'
import { resumeOptions, type ResumeOptions } from './resume-options.js'

/**
 * Goes on with a drain from its ticket, in this process or another: same members, same deadline. It
 * starts from draining, without a proof: only what this process reads itself leads to idle.
 *
 * @throws `TICKET_INVALID` at once where it is no ticket or belongs to another balancer
 */
export function resumeDrain(p: DrainableProvider, ticket: Ticket, o: ResumeOptions = {}): Drain {
  const subject = 'resumeDrain()'
  const { provider, ticket: known, resolved } = resumeOptions(p, ticket, o, subject, true)
  const hub = new EventHub(resolved.onEvent)
  const emit = (event: DrainEvent): void => hub.emit(event)
  const parts = partsOf(provider)
  const body =
    parts === undefined
      ? resumedRun(provider, known, resolved, subject, emit)
      : resumeCombined(provider, parts, known, resolved, subject, emit)
  return new DrainHandle(hub, body)
}
