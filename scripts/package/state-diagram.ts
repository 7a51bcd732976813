/** The table of transitions in src/core/member/README.md: a test compares it with the machine and with the picture of docs/idle.md. */

/** One way from a phase to another, for one goal. */
export interface Move {
  readonly goal: string
  readonly from: string
  readonly to: string
  /** What the diagram says of it. */
  readonly label: string
}

const TABLE = 'src/core/member/README.md'
const HEAD = ['goal', 'phase', 'what is seen', 'phase then', 'in the diagram']

/** The moves of the table in a page; a cell may list several goals or phases. */
export function movesOf(page: string): readonly Move[] {
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  const begin = rows.findIndex((cells) => cells.join() === HEAD.join())
  if (begin < 0) throw new Error(`${TABLE} has no table with the columns ${HEAD.join(', ')}`)
  const body = rows.slice(begin + 2)
  const after = body.findIndex((cells) => cells.length !== HEAD.length)
  return (after < 0 ? body : body.slice(0, after)).flatMap(toMoves)
}

function toMoves([goals = '', phases = '', , to = '', label = '']: readonly string[]): Move[] {
  return namesIn(goals).flatMap((goal) =>
    namesIn(phases).map((from) => ({ goal, from, to: namesIn(to)[0] ?? '', label })),
  )
}

/** Names between backticks. */
function namesIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
}

/** The arrows of the picture, as `from-to`: each path names those it stands for. */
export function arrowsOf(svg: string): readonly string[] {
  return [...svg.matchAll(/ data-moves="([^"]*)"/g)].flatMap((match) => (match[1] ?? '').split(' '))
}
