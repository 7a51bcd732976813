import type { Lane, Mark, Point, Span } from './lane.js'
import { markup, type Markup } from './markup.js'

/** The most points of a lane in the picture and in its table. */
export const MOST_SHOWN = 120

/** The axis of time of a picture, in epoch milliseconds. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** What of a lane is drawn. */
export type Drawn = Pick<Lane, 'phases' | 'states' | 'commands' | 'marks'> & {
  readonly name: string
  readonly points: readonly Point[]
}

const CHIPS = 22
const PLOT = 96
const BAND = 20
const GAP = 4
const AXIS = 20
/** The plot has this many units in each direction, and is stretched to the width of the page. */
const UNITS = 10_000
/** The narrowest picture for which labels are laid out, in pixels: a phone. */
const NARROW = 340

/** The picture of a lane: as wide as its place, so its text is as large on a phone as on a screen. */
export function lanePicture(lane: Drawn, range: Range): Markup {
  const bands = bandsOf(lane)
  const height = laneHeight(lane)
  return markup`<svg class="lane" role="img" width="100%" height="${height}" aria-label="${describe(lane)}">
<title>${describe(lane)}</title>
${plot(lane.points, range)}
${bands.flatMap((band, row) => bandRow(band, range, CHIPS + PLOT + GAP + row * (BAND + GAP)))}
${marksOf(lane.marks, range, height - AXIS)}
${axis(range, height)}
</svg>`
}

/** How high the picture of a lane is, in pixels. */
export function laneHeight(lane: Drawn): number {
  return CHIPS + PLOT + GAP + bandsOf(lane).length * (BAND + GAP) + AXIS
}

/** Only the phases of a lane, for the overview. */
export function phaseStrip({ name, phases, commands }: Drawn, range: Range): Markup {
  const label = `${name}: ${phases.map(({ label: phase }) => phase).join(', ')}`
  return markup`<svg class="strip" role="img" width="100%" height="${2 * BAND + GAP}" aria-label="${label}">
<title>${label}</title>
${bandRow({ spans: phases, kind: 'phase' }, range, 0)}
${bandRow({ spans: commands, kind: 'command' }, range, BAND)}
</svg>`
}

/** The axis of the overview. */
export function axisStrip(range: Range): Markup {
  return markup`<svg class="strip" aria-hidden="true" width="100%" height="${AXIS}">${axis(range, AXIS)}</svg>`
}

interface Band {
  readonly spans: readonly Span[]
  readonly kind: 'phase' | 'state' | 'command'
}

function bandsOf({ phases, states, commands }: Drawn): readonly Band[] {
  const all: readonly Band[] = [
    { spans: phases, kind: 'phase' },
    { spans: states, kind: 'state' },
    { spans: commands, kind: 'command' },
  ]
  return all.filter(({ spans }) => spans.length > 0)
}

function describe({ name, points, phases }: Drawn): string {
  const most = (key: 'active' | 'queued'): number => Math.max(0, ...points.map((p) => p[key]))
  const last = points.at(-1)
  const end = last === undefined ? '' : `, ${last.active} in flight at the last look`
  const words = phases.map(({ label }) => label).join(', ')
  return `${name} over time: at most ${most('active')} in flight and ${most('queued')} queued${end}; phases: ${words === '' ? 'none' : words}. The table has the numbers.`
}

/** The counts over time. A path can't have percentages, so it has a stretched picture of its own. */
function plot(points: readonly Point[], range: Range): Markup {
  const most = Math.max(0, ...points.map(({ active, queued }) => Math.max(active, queued)))
  const x = (at: number): number => round(share(at, range) * UNITS)
  const y = (count: number): number => round(UNITS - (count / Math.max(1, most)) * UNITS)
  const steps = points.map((point, i): Step => ({ point, to: x(points[i + 1]?.at ?? range.to) }))
  const line = (key: CountKey, shows: (point: Point) => boolean): string =>
    steps
      .map(({ point, to }, i) => {
        if (!shows(point)) return ''
        const before = steps[i - 1]?.point
        const joins = before !== undefined && shows(before)
        return `${joins ? `V${y(point[key])}` : `M${x(point.at)} ${y(point[key])}`}H${to}`
      })
      .join('')
  const isRead = ({ complete }: Point): boolean => complete
  const area = steps
    .filter(({ point }) => isRead(point))
    .map(({ point, to }) => `M${x(point.at)} ${UNITS}V${y(point.active)}H${to}V${UNITS}Z`)
  return markup`<rect class="plot" x="0" y="${CHIPS}" width="100%" height="${PLOT}"/>
${unreadSpans(points, range)}
<svg x="0" y="${CHIPS}" width="100%" height="${PLOT}" viewBox="0 -300 ${UNITS} ${UNITS + 600}" preserveAspectRatio="none">
<path class="area" d="${area.join('')}"/>
<path class="queued" d="${line('queued', ({ queued }) => queued > 0)}"/>
<path class="bound" d="${line('active', (point) => !isRead(point))}"/>
<path class="active" d="${line('active', isRead)}"/>
<path class="old" d="${line('old', ({ old }) => old > 0)}"/>
</svg>
<text class="scale" x="5" y="${CHIPS + 15}">${most}</text>`
}

type CountKey = 'active' | 'old' | 'queued'

interface Step {
  readonly point: Point
  /** Where the next one begins. */
  readonly to: number
}

/** Where not every process could be read: the line is a lower bound there, and joins no other. */
function unreadSpans(points: readonly Point[], range: Range): readonly Markup[] {
  return points.flatMap(({ at, complete }, i) => {
    if (complete) return []
    const to = points[i + 1]?.at ?? range.to
    return [
      markup`<rect class="unread" x="${percent(at, range)}" y="${CHIPS}" width="${width(at, to, range)}" height="${PLOT}"/>`,
    ]
  })
}

function bandRow({ spans, kind }: Band, range: Range, y: number): readonly Markup[] {
  return spans.map(({ from, to, label }) => {
    const wide = (share(to, range) - share(from, range)) * NARROW
    const text = wide < 14 ? undefined : markup`<text x="5" y="${BAND - 6}">${label}</text>`
    return markup`<svg class="band ${kind}-${label}" x="${percent(from, range)}" y="${y}" width="${width(from, to, range)}" height="${BAND}"><rect width="100%" height="100%"/><rect class="weave" width="100%" height="100%"/>${text}</svg>`
  })
}

/** A line at each mark, and its number above. Numbers that would touch on a phone become one: 3-5. */
function marksOf(marks: readonly Mark[], range: Range, bottom: number): readonly Markup[] {
  const lines = marks.map(({ at }) => {
    const x = percent(at, range)
    return markup`<line class="mark" x1="${x}" x2="${x}" y1="${CHIPS - 4}" y2="${bottom}"/>`
  })
  const chips = chipsOf(marks, range).map(({ at, label }) => {
    const w = chipWidth(label)
    const isLate = share(at, range) > 0.8
    return markup`<svg class="chip" x="${percent(at, range)}" y="0" overflow="visible" width="1" height="18"><rect x="${isLate ? 1 - w : -1}" y="1" width="${w}" height="17" rx="3"/><text x="${(isLate ? 1 - w : -1) + w / 2}" y="14">${label}</text></svg>`
  })
  return [...lines, ...chips]
}

interface Chip {
  readonly at: number
  readonly label: string
}

function chipsOf(marks: readonly Mark[], range: Range): readonly Chip[] {
  const chips: { at: number; first: number; last: number }[] = []
  for (const [i, { at }] of marks.entries()) {
    const open = chips.at(-1)
    const free = open === undefined ? 0 : share(open.at, range) * NARROW + chipWidth('88–88') + 2
    if (open !== undefined && share(at, range) * NARROW < free) open.last = i + 1
    else chips.push({ at, first: i + 1, last: i + 1 })
  }
  return chips.map(({ at, first, last }) => ({
    at,
    label: first === last ? `${first}` : `${first}–${last}`,
  }))
}

function chipWidth(label: string): number {
  return 9 + 7 * label.length
}

/** Round times since the beginning. */
function axis({ from, to }: Range, height: number): readonly Markup[] {
  const seconds = (to - from) / 1000
  const every = STEPS.find((step) => seconds / step <= 5) ?? seconds / 5
  const ticks: Markup[] = []
  for (let n = 0; n * every <= seconds; n += 1) {
    const at = from + n * every * 1000
    const place = share(at, { from, to })
    const anchor = place < 0.03 ? 'start' : place > 0.95 ? 'end' : 'middle'
    ticks.push(
      markup`<text class="tick" x="${percent(at, { from, to })}" y="${height - 5}" text-anchor="${anchor}">${tickText(n * every)}</text>`,
    )
  }
  return ticks
}

const STEPS = [
  0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400,
  43_200, 86_400,
]

/** A time on the axis, such as 0.5 s, 30 s, 5 min, 2 h. */
function tickText(seconds: number): string {
  if (seconds < 120) return `${Number(seconds.toFixed(2))} s`
  if (seconds < 7_200) return `${Number((seconds / 60).toFixed(1))} min`
  return `${Number((seconds / 3_600).toFixed(1))} h`
}

function share(at: number, { from, to }: Range): number {
  return Math.min(1, Math.max(0, (at - from) / Math.max(1, to - from)))
}

function percent(at: number, range: Range): string {
  return `${round(share(at, range) * 100)}%`
}

function width(from: number, to: number, range: Range): string {
  return `${Math.max(0.3, round((share(to, range) - share(from, range)) * 100))}%`
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
