import {
  stepDrain,
  type DrainableProvider,
  type DrainStep,
  type StepOptions,
  type StepStart,
  type Ticket,
} from 'drainable'
import type { FakeClock } from 'drainable/testing'

/** One step, with its clock moved on for as long as it goes. */
export async function stepped(
  provider: DrainableProvider,
  from: Ticket | StepStart,
  options: StepOptions & { readonly clock: FakeClock },
): Promise<DrainStep> {
  return options.clock.runUntil(stepDrain(provider, from, options))
}
