import type { MemberRef } from '../../provider/contract.js'
import type { DrainReport } from '../../provider/report.js'
import { describeEnd, runCommand, type Ended } from '../child.js'
import type { ErrorData } from '../result.js'
import type { Session } from '../session.js'

/** What COMMAND is told, and what ends it early. */
export interface HeldCommand {
  readonly refs: readonly MemberRef[]
  /** The address of the server; undefined if there is none, or more than one. */
  readonly address?: string | undefined
  /** Further variables. */
  readonly env?: Readonly<Record<string, string>>
  /** When it fires, COMMAND gets a SIGTERM, and is waited for. */
  readonly signal: AbortSignal
}

/**
 * Runs COMMAND while members are held. It has the terminal meanwhile, and learns its members from the environment:
 * `DRAINABLE_MEMBER` is the first of them, `DRAINABLE_MEMBERS` all of them with blanks between, `DRAINABLE_ADDRESS` the
 * server's address.
 *
 * @throws `ACTION_FAILED` if it can't be started
 */
export async function runHeld(
  { io, printer, quietStdout }: Session,
  command: readonly string[],
  { refs, address, env, signal }: HeldCommand,
): Promise<Ended> {
  const names = refs.map(({ pool, member }) => `${pool}/${member}`)
  printer.pause()
  try {
    return await runCommand(command, {
      env: {
        ...io.env,
        DRAINABLE_MEMBER: names[0] ?? '',
        DRAINABLE_MEMBERS: names.join(' '),
        ...(address === undefined ? {} : { DRAINABLE_ADDRESS: address }),
        ...env,
      },
      quietStdout,
      signal,
    })
  } finally {
    printer.resume()
  }
}

/** The address that all members of a drain share. */
export function addressOf({ members }: DrainReport): string | undefined {
  const found = members.map(({ lastReading }) =>
    lastReading?.present === true ? lastReading.address : undefined,
  )
  const [address] = found
  return found.every((one) => one === address) ? address : undefined
}

/** The error of a COMMAND that failed. */
export function commandFailed(ended: Ended): ErrorData {
  return {
    code: 'ACTION_FAILED',
    message: `COMMAND ${describeEnd(ended)}: the member stays drained; 'ready' opens it`,
  }
}
