/** What the command has of the outside: a test gives its own. */
export interface Io {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** The user's home, for the default place of tickets. */
  readonly home: string
  /** Calls back for each SIGINT, SIGTERM and SIGHUP; returns a function that ends that. */
  readonly onSignal: (heard: (signal: EndSignal) => void) => () => void
  /** Ends the process at once. */
  readonly exitNow: (code: number) => void
}

/** The signals that ask the command to end. */
export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** A stream that text is written to. */
export interface Output {
  write(text: string): unknown
  /** Whether nobody reads it any more: a pipe that was closed early. */
  readonly isClosed: boolean
  /** The width in columns, if it is a terminal. */
  readonly columns: number | undefined
  /** The height in rows, if it is a terminal. */
  readonly rows: number | undefined
  /** Calls back when the terminal's size changes; returns a function that ends that. */
  onResize?(resized: () => void): () => void
  /** Calls back once, when nobody reads it any more. */
  onClose?(closed: () => void): void
}

/** The streams of this process. A pipe that is closed early ends no drain and prints no stack. */
export function processOutput(stream: NodeJS.WriteStream): Output {
  let isClosed = false
  const heard: (() => void)[] = []
  stream.on('error', () => {
    isClosed = true
    for (const closed of heard.splice(0)) closed()
  })
  return {
    write: (text) => isClosed || stream.write(text),
    get isClosed() {
      return isClosed
    },
    get columns() {
      return stream.isTTY ? stream.columns : undefined
    },
    get rows() {
      return stream.isTTY ? stream.rows : undefined
    },
    onResize: (resized) => {
      stream.on('resize', resized)
      return () => stream.off('resize', resized)
    },
    onClose: (closed) => {
      heard.push(closed)
    },
  }
}

/** The process as the command meets it. */
export function processIo(home: string): Io {
  return {
    stdout: processOutput(process.stdout),
    stderr: processOutput(process.stderr),
    env: process.env,
    home,
    onSignal: (heard) => {
      const names: readonly EndSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
      for (const name of names) process.on(name, heard)
      return () => {
        for (const name of names) process.off(name, heard)
      }
    },
    exitNow: (code) => process.exit(code),
  }
}
