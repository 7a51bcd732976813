import { isDrainableError } from 'drainable'
import { WORLD_VERBS } from './balancer-verbs.js'
import { CALL_VERBS, type Caller } from './call-verbs.js'
import { FIRST_PROCESS } from './lines.js'
import { sayError } from './say.js'
import { World } from './world.js'
import type { Entry, History } from './text.js'

/** What passes after each command, in milliseconds: some looks, and less than any time that a user gives. */
const A_FEW_LOOKS = 400

/** Plays a history, and gives it back with what was seen. */
export async function play(history: History): Promise<History> {
  const putBack = withoutChance()
  const world = new World()
  try {
    const entries: Entry[] = []
    for (const entry of history.entries) {
      await command(world, entry.command)
      entries.push({ ...entry, seen: world.lines.take() })
    }
    return { ...history, entries }
  } finally {
    await world.close()
    putBack()
  }
}

/** The commands of a line, ` & ` between them, happen at one moment; then a few looks pass. */
async function command(world: World, line: string): Promise<void> {
  for (const part of line.split(' & ')) await one(world, part.trim())
  await world.pass(A_FEW_LOOKS)
}

async function one(world: World, text: string): Promise<void> {
  const [, given, rest = ''] = /^(?:(\w+): )?(.*)$/.exec(text) ?? []
  const [verb = '', ...words] = rest.split(/ +/)
  const atBalancer = WORLD_VERBS[verb]
  if (atBalancer !== undefined) return atBalancer(world, words)
  const call = CALL_VERBS[verb]
  if (call === undefined) throw new Error(`there is no command '${verb}'`)
  const process = world.process(given ?? FIRST_PROCESS)
  const say = (line: string): void => {
    if (process.alive) world.lines.say(process.name, line)
  }
  const caller: Caller = { world, process, say }
  try {
    await call(caller, words)
  } catch (error) {
    // What a call refuses at once is seen; a mistake in the history is not.
    if (!isDrainableError(error)) throw error
    say(`${verb} throws ${sayError(error)}`)
  }
}

/** One history is one story, on every machine. */
function withoutChance(): () => void {
  const { random } = Math
  let state = 123_456_789
  Math.random = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  return () => {
    Math.random = random
  }
}
