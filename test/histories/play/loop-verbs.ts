/** Commands about the loop that carries desired sets out. */
import { reconcile, type DesiredMember, type Reconciler, type ReconciledMember } from 'drainable'
import { asked, type CallVerb } from './call-verbs.js'
import { nameOf, refOf } from './names.js'
import { sayError } from './say.js'
import type { UserProcess } from './user-process.js'

/** `reconcile web owns`: the loop over one pool, which claims every member of it, or only what it added itself */
const reconcileVerb: CallVerb = ({ world, process, say }, words) => {
  const { provider, name, flags, given } = asked({ world, process, say }, words)
  const controller = new AbortController()
  const loop = reconcile(provider, {
    ...given,
    pools: [name],
    clock: process.clock,
    signal: controller.signal,
    ...(flags.has('owns') ? { owns: () => true } : {}),
    ...(flags.has('ticket') ? { tickets: world.store(process) } : {}),
    ...(flags.has('lease') ? { lease: world.lease } : {}),
  })
  loop.on('fault', (error) => say(`fault ${sayError(error)}`))
  loop.done.catch((error: unknown) => say(`the loop ends ${sayError(error)}`))
  process.calls.set(LOOP, { controller, say, loop })
}

const LOOP = 'the loop'

function loopOf({ calls }: UserProcess): Reconciler {
  const loop = calls.get(LOOP)?.loop
  if (loop === undefined) throw new Error('no loop is under way')
  return loop
}

/** `want a serve, b drain, d@10.0.0.9 serve`: the whole set */
const want: CallVerb = ({ process }, words) => {
  const text = words.join(' ')
  loopOf(process).set(text === 'nothing' ? [] : text.split(', ').map(desiredOf))
}

function desiredOf(entry: string): DesiredMember {
  const [what = '', state] = entry.split(' ')
  const [name = '', address] = what.split('@')
  const { pool, member } = refOf(name)
  const place = address === undefined ? {} : { address, port: 80 }
  return { pool, member, ...place, state: state as DesiredMember['state'] }
}

/** What is not simply as wanted. */
const status: CallVerb = ({ process, say }) => {
  const rows = loopOf(process).status()
  if (rows.length === 0) say('all as wanted')
  for (const row of rows) say(sayRow(row))
}

function sayRow({ ref, want: wanted, phase, held, why }: ReconciledMember): string {
  const reasons = [...new Set(why.map(({ code }) => code))].join(', ')
  const because = held ?? reasons
  return `${nameOf(ref)} wanted ${wanted}, ${phase}${because === '' ? '' : `: ${because}`}`
}

export const loopVerbs: Readonly<Record<string, CallVerb>> = {
  reconcile: reconcileVerb,
  want,
  status,
}
