import { formatRef } from '../../src/provider/member-ref.js'
import type { Mark } from '../../src/cli/report/lane.js'
import { Markup, markup } from '../../src/cli/report/markup.js'
import { laneHeight, lanePicture } from '../../src/cli/report/picture.js'
import { DAY, LANE_STYLE } from '../../src/cli/report/style.js'
import type { MemberLane, Timeline } from '../../src/cli/report/timeline.js'
import { WEAVES } from '../../src/cli/report/weaves.js'

const WIDTH = 980
const MARGIN = 20
const HEAD = 26
const LINE = 17
const COLUMNS = 2

/** The lanes of a report as a picture of its own, for a README: white as paper, with its events below each lane. */
export function pictureFile({ groups, from, to }: Timeline, title: string): string {
  const parts: Markup[] = []
  let y = 40
  for (const lane of groups.flatMap(({ lanes }) => lanes)) {
    const height = laneHeight(drawn(lane))
    const marks = lane.marks.map((mark, i) => markText(mark, i, from, y + HEAD + height, lane))
    parts.push(
      markup`<text class="name" x="${MARGIN}" y="${y + 14}">${formatRef(lane.ref)}</text>
<svg x="${MARGIN}" y="${y + HEAD}" width="${WIDTH - 2 * MARGIN}" height="${height}">
${lanePicture(drawn(lane), { from, to })}
</svg>
${marks}`,
    )
    y += HEAD + height + rowsOf(lane) * LINE + 24
  }
  return `${
    markup`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="12">
<title>${title}</title>
<style>${new Markup(`svg { ${DAY} } ${LANE_STYLE} text { fill: var(--ink) } .name { font-weight: 600; font-size: 14px } .key { fill: var(--soft) }`)}</style>
${WEAVES}
<rect width="100%" height="100%" fill="#ffffff"/>
<text class="key" x="${MARGIN}" y="22">Blue: in flight. Dashes: queued. Dots: in a process from before a reload. Below: phase of the drain, state on the balancer.</text>
${parts}
</svg>`.text
  }\n`
}

function markText(
  { at, text }: Mark,
  i: number,
  from: number,
  top: number,
  lane: MemberLane,
): Markup {
  const rows = rowsOf(lane)
  const x = MARGIN + Math.floor(i / rows) * ((WIDTH - 2 * MARGIN) / COLUMNS)
  const words = text.length > 62 ? `${text.slice(0, 60)}…` : text
  return markup`<text x="${x}" y="${top + 14 + (i % rows) * LINE}">${i + 1}. ${((at - from) / 1_000).toFixed(2)} s: ${words}</text>`
}

function rowsOf({ marks }: MemberLane): number {
  return Math.max(1, Math.ceil(marks.length / COLUMNS))
}

function drawn(lane: MemberLane): Parameters<typeof lanePicture>[0] {
  return { ...lane, name: formatRef(lane.ref), points: lane.points }
}
