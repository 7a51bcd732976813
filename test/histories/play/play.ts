import { WORLD_VERBS } from './balancer-verbs.js'
import { CALL_VERBS, type Scene } from './call-verbs.js'
import { FIRST_PROCESS } from './lines.js'
import { sayError } from './say.js'
import { Stage } from './stage.js'
import type { Entry, History } from './text.js'

/** What passes after each command, in milliseconds: some looks, and less than any time that a user gives. */
const A_FEW_LOOKS = 400

/** Plays a history, and gives it back with what was seen. */
export async function play(history: History): Promise<History> {
  const putBack = withoutChance()
  const stage = new Stage()
  try {
    const entries: Entry[] = []
    for (const entry of history.entries) {
      await command(stage, entry.command)
      entries.push({ ...entry, seen: stage.lines.take() })
    }
    return { ...history, entries }
  } finally {
    await stage.close()
    putBack()
  }
}

/** The commands of a line, ` & ` between them, happen at one moment; then a few looks pass. */
async function command(stage: Stage, line: string): Promise<void> {
  for (const part of line.split(' & ')) await one(stage, part.trim())
  await stage.settle(A_FEW_LOOKS)
}

async function one(stage: Stage, text: string): Promise<void> {
  const [, given, rest = ''] = /^(?:(\w+): )?(.*)$/.exec(text) ?? []
  const [verb = '', ...words] = rest.split(/ +/)
  const world = WORLD_VERBS[verb]
  if (world !== undefined) return world(stage, words)
  const call = CALL_VERBS[verb]
  if (call === undefined) throw new Error(`there is no command '${verb}'`)
  const process = stage.process(given ?? FIRST_PROCESS)
  const say = (line: string): void => {
    if (process.alive) stage.lines.say(process.name, line)
  }
  const scene: Scene = { stage, process, say }
  try {
    await call(scene, words)
  } catch (error) {
    // What a call refuses at once is seen; a mistake in the history is not.
    if (!(error instanceof Error) || error.name !== 'DrainableError') throw error
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
