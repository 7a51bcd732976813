/** The tables of docs/endpoint-conditions.md that the code itself decides. */
import {
  mapEndpoints,
  strategies,
  type Decision,
  type EndpointInput,
  type StrategyName,
} from 'drainable/endpoints'

/** Three letters for ready, serving, terminating: true, false, or `-` for not said. */
export type Letters = string

export const STRATEGY_NAMES = Object.keys(strategies) as StrategyName[]

/** The combinations that the EndpointSlice controller writes, the one that only others write, and some with nils. */
const SAID: readonly Letters[] = ['TTF', 'FTF', 'FFF', 'FTT', 'FFT', 'TTT', 'TFT', 'TFF']
const UNSAID: readonly Letters[] = ['---', 'F--', 'F-T', '--T', 'F-F', '-FT', '-F-']

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** What a strategy does to the first endpoint of a set. */
export function judge(
  strategy: StrategyName,
  first: EndpointInput,
  ...others: EndpointInput[]
): Decision {
  const [decision] = mapEndpoints([first, ...others], { strategy })
  if (decision === undefined) throw new Error('no decision')
  return decision
}

export function endpoint(letters: Letters): EndpointInput {
  const [ready, serving, terminating] = Array.from(letters, (l) => (l === '-' ? null : l === 'T'))
  return { addresses: ['192.0.2.1'], conditions: { ready, serving, terminating } }
}

const LETTER = { serve: 'S', drain: 'D', exclude: 'x' } as const

/** One cell: alone, beside an active one, beside a terminating one, beside an unready one. */
function cell(strategy: StrategyName, letters: Letters): string {
  const beside = [[], ['TTF'], ['FTT'], ['FFF']]
  return beside
    .map((others) => judge(strategy, endpoint(letters), ...others.map(endpoint)))
    .map(({ action }) => LETTER[action])
    .join('')
}

function decisionTable(columns: readonly Letters[]): string {
  const rows = STRATEGY_NAMES.map((name) => {
    const cells = columns.map((letters) => cell(name, letters))
    return name === 'serve-terminating-fallback' ? [`**${name}**`, ...cells] : [name, ...cells]
  })
  return table(['strategy', ...columns.map((letters) => `\`${letters}\``)], rows)
}

export const saidTable = (): string => decisionTable(SAID)
export const unsaidTable = (): string => decisionTable(UNSAID)

/** A row of the table that pull 4946 was discussed by: serving and terminating of A, and of B. */
interface PullRow {
  readonly text: string
  readonly endpoints: readonly (readonly [serving: boolean, terminating: boolean])[]
}

const PULL_ROWS: readonly PullRow[] = [
  { text: 'A serving', endpoints: [[true, false]] },
  { text: 'A not serving', endpoints: [[false, false]] },
  { text: 'A not serving, terminating', endpoints: [[false, true]] },
  { text: 'A serving, terminating (its preStop hook runs)', endpoints: [[true, true]] },
  {
    text: 'A serving, terminating; B not serving',
    endpoints: [
      [true, true],
      [false, false],
    ],
  },
  {
    text: 'A serving, terminating; B serving',
    endpoints: [
      [true, true],
      [true, false],
    ],
  },
  {
    text: 'A not serving, terminating; B serving',
    endpoints: [
      [false, true],
      [true, false],
    ],
  },
]

const PULL_COLUMNS = [
  'pr4946-proposal',
  'pr4946-objection',
  'envoy-gateway-1.3',
  'envoy-gateway',
] as const satisfies readonly StrategyName[]

/** The table that started it. It names no `ready`, so the controller's is taken: serving and not terminating. */
export function pullTable(): string {
  const rows = PULL_ROWS.map(({ text, endpoints }, i) => {
    const set = endpoints.map(([serving, terminating], n) => ({
      addresses: [`192.0.2.${n + 1}`],
      conditions: { ready: serving && !terminating, serving, terminating },
    }))
    const say = (strategy: StrategyName, word: (d: Decision) => string): string =>
      mapEndpoints(set, { strategy })
        .map((decision, n) =>
          set.length === 1 ? word(decision) : `${'AB'.charAt(n)} ${word(decision)}`,
        )
        .join(', ')
    const theirs = PULL_COLUMNS.map((name) => say(name, ({ health }) => health))
    return [
      String(i + 1),
      text,
      ...theirs,
      `**${say('serve-terminating-fallback', (d) => d.action)}**`,
    ]
  })
  const head = [
    '#',
    'endpoints',
    'proposed',
    'with the objection',
    'merged (v1.3 to v1.5)',
    'today (v1.6 on)',
    'here',
  ]
  return table(head, rows)
}

/** The reasons of the default strategy, one set for each. */
export function reasonTable(): string {
  const sets: readonly (readonly [string, readonly EndpointInput[]])[] = [
    ['ready', [endpoint('TTF')]],
    ['terminating, serving, beside a ready one', [endpoint('FTT'), endpoint('TTF')]],
    ['terminating, serving, no better one', [endpoint('FTT')]],
    ['marked soft, beside a ready one', [{ ...endpoint('TTF'), intent: 'soft' }, endpoint('TTF')]],
    ['marked soft, no better one', [{ ...endpoint('TTF'), intent: 'soft' }]],
    [
      'published, terminating, not serving, beside a better one',
      [endpoint('TFT'), endpoint('TTF')],
    ],
    ['published, terminating, not serving, no better one', [endpoint('TFT')]],
    ['not ready', [endpoint('FFF')]],
    ['terminating, not serving', [endpoint('FFT')]],
    ['marked hard', [{ ...endpoint('TTF'), intent: 'hard' }]],
    ['weight 0', [{ ...endpoint('TTF'), weight: 0 }]],
    ['no address', [{ addresses: [] }]],
  ]
  return table(
    ['endpoint', 'action', 'health', 'still answers', 'reason'],
    sets.map(([text, set]) => {
      const [first, ...others] = set
      if (first === undefined) throw new Error('an empty set')
      const { action, health, serving, reason } = judge(
        'serve-terminating-fallback',
        first,
        ...others,
      )
      return [text, action, health, serving ? 'yes' : 'no', reason]
    }),
  )
}
