import { isWorkerGone, malformed, ReplySplitter, splitReplies } from '../codec/replies.js'
import { incarnationOf, parseInfo, type ProcessInfo } from '../codec/info.js'
import { type Channel, toLines, WorkerGone } from './channel.js'
import type { RuntimeSocket, Within } from './socket.js'

/** The socket of the master process: it passes commands on to any worker, old ones too. */
export class MasterSocket {
  readonly socket: RuntimeSocket

  constructor(socket: RuntimeSocket) {
    this.socket = socket
  }

  /** Sends one command to the master itself, with `quit`, because the master does not close by itself. */
  async ask(command: string, ctx: Within): Promise<string> {
    const text = await this.socket.exchange(`${command};quit`, ctx)
    return splitReplies(text, 1)[0] ?? ''
  }

  /** Returns a channel to that worker; with an incarnation, only to that one, even if pids repeat. */
  to(pid: number, incarnation: string | undefined): Channel {
    return {
      run: async (commands, ctx) => {
        const replies: string[] = []
        let first: ProcessInfo | undefined
        for (const line of toLines(commands)) {
          const [said = '', ...rest] = await this.#line(pid, line, ctx)
          const info = parseInfo(said)
          if (incarnation !== undefined && incarnationOf(info) !== incarnation)
            throw new WorkerGone()
          first ??= info
          replies.push(...rest)
        }
        if (first === undefined) throw malformed("a reply of 'show info'", '')
        return { info: first, replies }
      },
    }
  }

  /** `@!<pid>` alone sends the rest of the line to that worker; its `quit` ends the connection. */
  async #line(pid: number, commands: readonly string[], ctx: Within): Promise<string[]> {
    const splitter = new ReplySplitter()
    let taken = 0
    let count = 0
    const text = await this.socket.exchange(
      [`@!${pid}`, ...commands, 'quit'].join(';'),
      ctx,
      (all) => {
        // 3.x does not close after this reply, whatever follows on the line.
        if (isWorkerGone(all)) return true
        count += splitter.push(all.slice(taken)).length
        taken = all.length
        return count >= commands.length
      },
    )
    if (isWorkerGone(text)) throw new WorkerGone()
    return splitReplies(text, commands.length)
  }
}
