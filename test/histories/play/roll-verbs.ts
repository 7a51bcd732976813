/** Commands about rolls. */
import { resumeRoll, startRoll, type RollOptions, type Ticket } from 'drainable'
import { asked, type CallVerb, type Caller } from './call-verbs.js'
import { nameOf } from './names.js'
import { sayRollEvent } from './say.js'

type Common = Pick<RollOptions, 'act' | 'signal' | 'clock' | 'tickets' | 'onEvent' | 'lease'>

function common(
  { world, process }: Caller,
  say: (line: string) => void,
  signal: AbortSignal,
  flags: ReadonlySet<string>,
): Common {
  return {
    clock: process.clock,
    signal,
    onEvent: (event) => sayRollEvent(event).forEach(say),
    act: ({ ref, signal: told }) => {
      told.addEventListener('abort', () => say(`act of ${nameOf(ref)} is told to stop`))
      return new Promise((resolve, reject) => {
        const end = (error?: Error): void => (error === undefined ? resolve() : reject(error))
        process.working.push({ end })
      })
    },
    ...(flags.has('ticket') ? { tickets: world.store(process) } : {}),
    ...(flags.has('lease') ? { lease: world.lease } : {}),
  }
}

/** `roll pool web ticket`: server by server; each `act` waits for `action done` */
const roll: CallVerb = (caller, words) => {
  const { provider, target, name, flags, given, say } = asked(caller, words)
  const controller = new AbortController()
  const id = flags.has('ticket') ? { id: name } : {}
  const run = startRoll(provider, target, {
    ...given,
    ...id,
    ...common(caller, say, controller.signal, flags),
  })
  void run.done
  caller.process.calls.set(name, { controller, say })
}

/** `resume-roll web` */
const resumeRollVerb: CallVerb = (caller, [name = '', ...words]) => {
  const { provider, flags, say } = asked(caller, [name, ...words])
  const controller = new AbortController()
  const ticket = caller.world.tickets.read(caller.process, name) as Ticket
  const run = resumeRoll(
    provider,
    ticket,
    common(caller, say, controller.signal, new Set([...flags, 'ticket'])),
  )
  void run.done
  caller.process.calls.set(name, { controller, say })
}

export const rollVerbs: Readonly<Record<string, CallVerb>> = {
  roll,
  'resume-roll': resumeRollVerb,
}
