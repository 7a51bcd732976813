/**
 * What a row of the statistics shows of a server's agent (`agent-check`), which sets the state itself at every check if it
 * says ready, drain or maint. HAProxy does not report that word, only its effect on the health (2.6, 3.0, 3.2 and 3.4).
 */
export interface AgentWord {
  /** `via agent : up` or the like; empty if it said no word of health last. */
  readonly said: string
  /** Whether it was asked, and its last word was none of health: `ready`, `drain`, `maint` or a weight. */
  readonly setsState: boolean
}

/** @param status - `agent_status`; @param said - `last_agt` */
export function toAgentWord(status: string, said: string): AgentWord {
  return { said, setsState: status === 'CHECKED' }
}

/** The agent, as what sets a state. @param at - its address, where that is told */
export function nameOfAgent({ said }: AgentWord, at?: string): string {
  const words = said === '' ? '' : `, which said '${said.replace(/^via agent : /, '')}' last`
  return `its agent${atOf(at)} (agent-check${words})`
}

/** What a person should know of an agent that may undo what is set; none if its last word was one of health. */
export function hintsOfAgent({ setsState }: AgentWord, at?: string): readonly string[] {
  if (!setsState) return []
  return [
    `its agent${atOf(at)} sets its state at each check (ready, drain, maint or a weight; HAProxy does not tell which): that can undo what is set here`,
  ]
}

function atOf(at: string | undefined): string {
  return at === undefined ? '' : ` at ${at}`
}
