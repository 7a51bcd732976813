/** A file of histories: commands, and below each of them what was seen. */

/** One command and what is expected of it. */
export interface Entry {
  /** Empty lines and comments that stand before the command, as they are. */
  readonly before: readonly string[]
  readonly command: string
  /** What a user or a balancer sees, without the `> ` of the file. */
  readonly seen: readonly string[]
}

/** One history: its title is its claim. */
export interface History {
  /** Everything between the end of the history before and this title. */
  readonly before: readonly string[]
  readonly title: string
  readonly entries: readonly Entry[]
}

/** A whole file. */
export interface HistoryFile {
  readonly histories: readonly History[]
  /** What stands below the last command. */
  readonly after: readonly string[]
}

const TITLE = /^== (.+)$/
const SEEN = /^> (.*)$/

/** Reads a file of histories. */
export function parseHistories(text: string, file: string): HistoryFile {
  const histories: { before: string[]; title: string; entries: Entry[] }[] = []
  let loose: string[] = []
  text
    .replace(/\n+$/, '')
    .split('\n')
    .forEach((line, index) => {
      const title = TITLE.exec(line)?.[1]
      const seen = SEEN.exec(line)?.[1]
      const history = histories.at(-1)
      if (title !== undefined) {
        histories.push({ before: loose, title, entries: [] })
        loose = []
      } else if (seen !== undefined) {
        const entry = history?.entries.at(-1)
        if (history === undefined || entry === undefined || loose.length > 0)
          throw new Error(`${file}:${index + 1}: '> ' without a command right above it`)
        history.entries[history.entries.length - 1] = { ...entry, seen: [...entry.seen, seen] }
      } else if (line === '' || line.startsWith('#')) loose.push(line)
      else if (history === undefined)
        throw new Error(`${file}:${index + 1}: '${line}' stands before the first '== title'`)
      else {
        history.entries.push({ before: loose, command: line, seen: [] })
        loose = []
      }
    })
  return { histories, after: loose }
}

/** The text of a file, as {@link parseHistories} reads it. */
export function formatHistories({ histories, after }: HistoryFile): string {
  const lines = histories.flatMap(({ before, title, entries }) => [
    ...before,
    `== ${title}`,
    ...formatEntries(entries),
  ])
  return `${[...lines, ...after].join('\n')}\n`
}

/** The commands of a history, with what was seen. */
export function formatEntries(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(({ before, command, seen }) => [
    ...before,
    command,
    ...seen.map((line) => `> ${line}`),
  ])
}
