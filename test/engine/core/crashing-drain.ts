/**
 * A drain that stops dead at one stage and waits to be killed: run by crash.test.ts as a process of
 * its own. Says the stage's name on stdout when it is there.
 */
import { fileTickets, startDrain } from 'drainable'
import type { DrainableProvider } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'

const [socket = '', master = '', folder = '', stage = ''] = process.argv.slice(2)
const lb: DrainableProvider = haproxyRuntime({ socket, master })

function stopAt(name: string): Promise<never> | undefined {
  if (name !== stage) return undefined
  console.log(stage)
  setInterval(() => undefined, 1_000) // stay until killed
  return new Promise(() => undefined)
}

const apply = lb.apply.bind(lb)
lb.apply = async (changes, context) => {
  const kind = changes.some((change) => change.kind === 'hold' && change.to === 'maint')
    ? 'seal'
    : 'hold'
  await stopAt(`before-${kind}`)
  const results = await apply(changes, context)
  await stopAt(`after-${kind}`)
  return results
}
const run = startDrain(
  lb,
  { pool: 'web', member: 's1' },
  { timeout: '1m', tickets: fileTickets(folder), id: 'crash' },
)
run.on('phase', ({ to }) => {
  if (to === 'draining' && stage === 'draining') void stopAt('draining')
})
await run.done
await stopAt('idle')
