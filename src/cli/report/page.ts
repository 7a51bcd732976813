import type { MemberRef } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import { formatRef } from '../../provider/member-ref.js'
import type { MemberReport, ServerReport, Why } from '../../provider/report.js'
import type { Result, Verb } from '../result.js'
import type { Balancer } from '../session.js'
import { withoutName } from '../words/event.js'
import { thin, type Mark, type Point } from './lane.js'
import { Markup, markup } from './markup.js'
import { axisStrip, lanePicture, MOST_SHOWN, phaseStrip, type Range } from './picture.js'
import { PAGE_STYLE } from './style.js'
import type { LaneGroup, MemberLane, Timeline } from './timeline.js'
import {
  meaning,
  memberVerdict,
  resultVerdict,
  serverVerdict,
  SIGN,
  type Verdict,
} from './verdict.js'
import { WEAVES } from './weaves.js'

/** What a page is about. */
export interface PageFacts {
  readonly verb: Verb
  readonly version: string
  /** When the page was made, in epoch milliseconds. */
  readonly now: number
}

/** The page of a drain or a roll: one document, which asks for nothing from anywhere and runs nothing. */
export function page(timeline: Timeline, result: Result | undefined, facts: PageFacts): string {
  const verdict = resultVerdict(result)
  const lanes = timeline.groups.flatMap((group) => group.lanes)
  const title = `${TITLE[facts.verb]} ${namesOf(timeline)}`.trim()
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}: ${verdict.text}</title>
<style>${style()}</style>
</head>
<body>
<svg width="0" height="0" style="position: absolute" aria-hidden="true">${WEAVES}</svg>
<main>
<h1>${title}</h1>
${verdictLine(verdict, 'headline')}
${factList(timeline, result, facts, lanes)}
${lanes.length === 0 ? markup`<p>No member was looked at.</p>` : legend(lanes)}
${lanes.length > 1 ? overview(timeline, lanes) : undefined}
${servers(timeline)}
${timeline.groups.flatMap((group) => groupSection(group) ?? [])}
${lanes.length === 0 ? undefined : numbers(timeline)}
</main>
<footer><p class="soft">Written by drainable ${facts.version} at ${new Date(facts.now).toISOString()}. Times are UTC.</p></footer>
</body>
</html>
`.text
}

const TITLE: Readonly<Record<Verb, string>> = {
  drain: 'Drain of',
  ready: 'Making ready',
  status: 'Status of',
  watch: 'Watch over',
  plan: 'Plan for',
  roll: 'Roll of',
  resume: 'Resumed drain of',
  restore: 'Undo of the drain of',
  orphans: 'Orphans of',
}

/** What it was about: a few members by name, many by their pools. */
function namesOf({ groups }: Timeline): string {
  const refs = groups.flatMap(({ server, lanes }) => server?.refs ?? lanes.map(({ ref }) => ref))
  if (refs.length === 0) return 'nothing'
  if (refs.length <= 3) return refs.map(formatRef).join(', ')
  const pools = refs.map(({ balancer, pool }) =>
    balancer === undefined ? pool : `${balancer}:${pool}`,
  )
  const distinct = [...new Set(pools)]
  const more = distinct.length > 3 ? ` and ${distinct.length - 3} more` : ''
  return `${refs.length} members in ${distinct.slice(0, 3).join(', ')}${more}`
}

/** The only text that is put in as it is: it is ours. */
function style(): Markup {
  return new Markup(PAGE_STYLE)
}

function verdictLine({ tone, text }: Verdict, more = ''): Markup {
  return markup`<p class="${`${tone} ${more}`.trim()}">${SIGN[tone]} ${text}</p>`
}

function factList(
  { from, to }: Timeline,
  result: Result | undefined,
  { verb }: PageFacts,
  lanes: readonly MemberLane[],
): Markup {
  const rows: (readonly [string, string] | undefined)[] = [
    result?.balancer === undefined ? undefined : ['Balancer', balancerWords(result.balancer)],
    lanes.length === 0 ? undefined : ['Began', new Date(from).toISOString()],
    lanes.length === 0
      ? undefined
      : ['Ended', `${new Date(to).toISOString()}, after ${formatDuration(to - from)}`],
    result === undefined
      ? undefined
      : ['Exit status', `${result.exitCode}: ${meaning(result.exitCode)}`],
    result !== undefined && 'ticket' in result
      ? ['Ticket', `${result.ticket}${verb === 'restore' ? '' : ', for restore and resume'}`]
      : undefined,
  ]
  const roll = result !== undefined && 'roll' in result ? result.roll : undefined
  const shown = [
    ...rows.filter((row) => row !== undefined),
    ...refsRow('Left drained', roll?.leftDrained),
    ...refsRow('Left as found', roll?.leftAsFound),
  ]
  return markup`<dl>
${shown.map(([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>`)}
</dl>`
}

function refsRow(
  name: string,
  refs: readonly MemberRef[] = [],
): readonly (readonly [string, string])[] {
  return refs.length === 0 ? [] : [[name, refs.map(formatRef).join(', ')]]
}

function balancerWords({ name, instance }: Balancer): string {
  return instance === '' ? name : `${name}, ${instance}`
}

function legend(lanes: readonly MemberLane[]): Markup {
  const line = (name: string): Markup =>
    markup`<svg class="lane" width="34" height="10" aria-hidden="true"><line class="${name}" x1="1" x2="33" y1="5" y2="5"/></svg>`
  const band = (name: string): Markup =>
    markup`<svg class="band ${name}" width="34" height="14" aria-hidden="true"><rect width="100%" height="100%"/><rect class="weave" width="100%" height="100%"/></svg>`
  const has = (key: 'old' | 'queued'): boolean =>
    lanes.some(({ points }) => points.some((point) => point[key] > 0))
  const isUnread = lanes.some(({ points }) => points.some(({ complete }) => !complete))
  const rows = [
    markup`<li>${line('active')} in flight</li>`,
    ...(has('old')
      ? [markup`<li>${line('old')} of these in a process from before a reload</li>`]
      : []),
    ...(has('queued') ? [markup`<li>${line('queued')} queued</li>`] : []),
    ...(isUnread
      ? [markup`<li>${band('phase-removed')} not every process could be read</li>`]
      : []),
    markup`<li>${band('phase-draining')} draining</li>`,
    markup`<li>${band('phase-idle')} idle</li>`,
    markup`<li>${band('state-drain')} out, by the balancer's own state</li>`,
  ]
  return markup`<ul class="key" aria-label="Key of the pictures">
${rows}
</ul>
<p class="soft">First band: the phase of the drain. Second: the state on the balancer. Third, where it ran: COMMAND. A numbered line is an event of the list below its picture.</p>`
}

function overview(timeline: Timeline, lanes: readonly MemberLane[]): Markup {
  return markup`<section>
<h2>Overview</h2>
${lanes.map(
  (lane) =>
    markup`<div class="row"><span><bdi>${formatRef(lane.ref)}</bdi></span>${phaseStrip(drawn(lane), timeline)}</div>`,
)}
<div class="row"><span></span>${axisStrip(timeline)}</div>
</section>`
}

function servers({ groups }: Timeline): Markup | undefined {
  const rows = groups.flatMap(({ server }) => (server === undefined ? [] : [server]))
  if (rows.length === 0) return undefined
  return markup`<section>
<h2>Servers</h2>
<div class="wide" tabindex="0" role="region" aria-label="Servers">
<table>
<thead><tr><th scope="col">Server</th><th scope="col">Members</th><th scope="col">Outcome</th><th scope="col" class="number">Calls of COMMAND</th><th scope="col" class="number">Drain took</th><th scope="col" class="number">COMMAND took</th><th scope="col" class="number">Healthy after</th><th scope="col">Error</th></tr></thead>
<tbody>
${rows.map((server) => {
  const { tone, text } = serverVerdict(server)
  const { address, refs, attempts, times, error } = server
  return markup`<tr><td>${address ?? ''}</td><td>${refs.map(formatRef).join(', ')}</td><td class="${tone}">${SIGN[tone]} ${text}</td><td class="number">${attempts}</td><td class="number">${took(times.drain)}</td><td class="number">${took(times.act)}</td><td class="number">${took(times.healthy)}</td><td class="words">${error?.message ?? ''}</td></tr>`
})}
</tbody>
</table>
</div>
</section>`
}

function took(ms: number | undefined): string {
  return ms === undefined ? '' : formatDuration(ms)
}

function groupSection({ server, lanes, from, to }: LaneGroup): Markup | undefined {
  if (lanes.length === 0) return undefined
  const failure = server?.error
  return markup`<section>
<h2>${server === undefined ? 'Members' : serverName(server)}</h2>
${server === undefined ? undefined : verdictLine(serverVerdict(server))}
${failure === undefined ? undefined : markup`<p>${failure.code}: ${failure.message}</p>`}
${lanes.map((lane) => member(lane, { from, to }))}
</section>`
}

function serverName({ address, refs }: ServerReport): string {
  const names = refs.slice(0, 3).map(formatRef)
  const more = refs.length > names.length ? ` and ${refs.length - names.length} more` : ''
  return `Server ${address === undefined ? '' : `${address}: `}${names.join(', ')}${more}`
}

function member(lane: MemberLane, range: Range): Markup {
  const { report, ref, waited, marks, omitted } = lane
  return markup`<section class="member">
<h3><bdi>${formatRef(ref)}</bdi></h3>
${report === undefined ? undefined : reportWords(report)}
${waited.length === 0 ? undefined : markup`<p class="soft">Waited for ${waited.map(([code, ms]) => `${code} ${formatDuration(ms)}`).join(', ')}.</p>`}
${lanePicture(drawn(lane), range)}
${marks.length === 0 ? undefined : markList(marks, range)}
${omitted === 0 ? undefined : markup`<p class="soft">${omitted} events between the first and the newest are left out.</p>`}
</section>`
}

function reportWords(report: MemberReport): Markup {
  const { proof, why, error, terminated, lost } = report
  return markup`${verdictLine(memberVerdict(report))}
${proof === undefined ? undefined : markup`<p>${withoutName(proof.text, formatRef(report.ref))}</p>`}
${why.length === 0 ? undefined : markup`<ul class="why">${why.map((reason) => markup`<li>${whyWords(reason)}</li>`)}</ul>`}
${error === undefined ? undefined : markup`<p>${error.code}: ${error.message}</p>`}
${terminated === 0 ? undefined : markup`<p>Cut at the deadline: ${report.terminatedAtMost === true ? 'at most ' : ''}${terminated}.</p>`}
${lost.map(({ scope, active, at, note }) => markup`<p>${scope} ended with ${active} in flight, last read ${at}${note === undefined ? '' : `: ${note}`}.</p>`)}`
}

function whyWords({ text, hint }: Why): string {
  return hint === undefined ? text : `${text}; ${hint}`
}

function markList(marks: readonly Mark[], { from }: Range): Markup {
  return markup`<ol class="marks">
${marks.map(({ at, text, times, last }, i) => {
  const again = times === 1 ? '' : ` (${times} times, for the last time at ${since(last, from)})`
  return markup`<li><b>${i + 1}</b><span>${since(at, from)}</span><span>${text}${again}</span></li>`
})}
</ol>`
}

/** Every number of the pictures. */
function numbers({ groups }: Timeline): Markup {
  return markup`<section>
<h2>Numbers</h2>
<p class="soft">One row for each look that showed something new. Where there were more than ${MOST_SHOWN}, a row has the highest numbers from its time to that of the next row. ≥: not every process could be read.</p>
${groups.flatMap(({ lanes, from }) => lanes.map((lane) => numbersOf(lane, from)))}
</section>`
}

function numbersOf({ ref, points, looks }: MemberLane, from: number): Markup {
  const shown = thin(points, MOST_SHOWN)
  const name = formatRef(ref)
  const head = ['Phase', 'State', 'Health'].map((text) => markup`<th scope="col">${text}</th>`)
  const counted = ['In flight', 'In old processes', 'Queued', 'Oldest']
  return markup`<div class="wide" tabindex="0" role="region" aria-label="Numbers of ${name}">
<table class="numbers">
<caption><bdi>${name}</bdi>: ${shown.length} rows of ${looks} looks</caption>
<thead><tr><th scope="col">Time</th><th scope="col" class="number">After</th>${head}${counted.map((text) => markup`<th scope="col" class="number">${text}</th>`)}<th scope="col">Why not idle</th></tr></thead>
<tbody>
${shown.map((point) => numberRow(point, from))}
</tbody>
</table>
</div>`
}

function numberRow(point: Point, from: number): Markup {
  const { at, phase, own, health, active, old, queued, oldest, complete, why } = point
  const least = complete ? '' : '≥ '
  const time = new Date(at).toISOString()
  return markup`<tr><td><time datetime="${time}">${time.slice(11, 23)}</time></td><td class="number">${since(at, from)}</td><td>${phase}</td><td>${own ?? ''}</td><td>${health ?? ''}</td><td class="number">${least}${active}</td><td class="number">${least}${old}</td><td class="number">${least}${queued}</td><td class="number">${oldest === null ? '' : formatDuration(oldest)}</td><td class="words">${why}</td></tr>`
}

/** A time since the beginning. */
function since(at: number, from: number): string {
  const ms = at - from
  return ms < 60_000 ? `${(ms / 1_000).toFixed(2)} s` : formatDuration(ms)
}

function drawn(lane: MemberLane): Parameters<typeof lanePicture>[0] {
  return { ...lane, name: formatRef(lane.ref), points: thin(lane.points, MOST_SHOWN) }
}
