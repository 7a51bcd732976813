import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import type { CliReply, HaproxyCli } from './cli.js'

/** A real HAProxy that the fake stands in front of. */
export interface FrontOptions {
  /** Its stats socket, with level admin. */
  readonly socket: string
  /** Its master socket: where reloads are asked for. Or a function that reloads. */
  readonly reload: string | (() => Promise<void>)
  /** Its configuration file: read at the start, written by configuration calls. */
  readonly config: string
}

/** How long one line may take: the API's own time-out. */
const LIMIT = 30_000

/** A real HAProxy over its stats socket: one connection a line, one line at a time, as the API has it. */
export class SocketHaproxy implements HaproxyCli {
  readonly socket: string
  readonly #front: FrontOptions
  #busy: Promise<unknown> = Promise.resolve()

  constructor(front: FrontOptions) {
    this.socket = front.socket
    this.#front = front
  }

  async run(line: string): Promise<CliReply> {
    const turn = this.#busy.then(() => ask(this.socket, `set severity-output number;${line}`))
    this.#busy = turn.catch(() => undefined)
    return readReply(await turn)
  }

  async reload(config: string): Promise<string> {
    await writeFile(this.#front.config, config)
    const { reload } = this.#front
    if (typeof reload === 'function') {
      await reload()
      return ''
    }
    return ask(reload, 'reload')
  }
}

/** The first reply is that of `set severity-output`: an empty line. */
function readReply(raw: string): CliReply {
  const text = raw.replace(/^\n/, '').replace(/\n+$/, '')
  const [, severity, words] = /^\[(\d)\]: ([\s\S]*)$/.exec(text) ?? []
  if (severity === undefined || words === undefined) return { severity: undefined, text }
  return { severity: Number(severity), text: words }
}

/** One line to a stats or master socket, read to its close. */
function ask(path: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(path)
    socket.setTimeout(LIMIT, () => socket.destroy(new Error(`read unix ${path}: i/o timeout`)))
    socket.on('connect', () => socket.write(`${line}\n`))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`dial unix ${path}: connect: ${error.code ?? error.message}`))
    })
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  })
}
