import type { Mark, Recording, Sample } from './recording.ts'

const WIDTH = 980
const LEFT = 74
const RIGHT = 16
const LANE = 136
const HEAD = 42
const CHART = 58
const TOP = 46

const COLOURS: Readonly<Record<string, string>> = {
  active: '#2b66b1',
  old: '#c07f12',
  queued: '#9a9a9a',
  ready: '#bfe3c3',
  drain: '#f7ddab',
  maint: '#c9c9c9',
  unknown: '#f0c2c2',
  gone: '#ffffff',
}

/** The recording as a picture: a lane per server with its counts over time and its own state below them. */
export function toSvg(recording: Recording, title: string): string {
  const lanes = [...recording.samples]
  const times = [...lanes.flatMap(([, all]) => all), ...recording.marks].map(({ at }) => at)
  const [from, to] = [Math.min(...times), Math.max(...times)]
  const x = (at: number): number =>
    LEFT + ((at - from) / Math.max(1, to - from)) * (WIDTH - LEFT - RIGHT)
  const height = TOP + lanes.length * LANE + 30
  const body = lanes.map(([name, samples], n) =>
    lane(name, samples, { top: TOP + n * LANE, x, to, marks: recording.marks }),
  )
  const shared = recording.marks.filter(({ server }) => server === undefined)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${escape(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    legend(),
    ...body,
    ...shared.map(({ at, text }) => across(x(at), height, text)),
    axis(from, to, x, height - 18),
    '</svg>',
    '',
  ].join('\n')
}

/** The picture on a page of its own, with what each drain gave as its proof. */
export function toHtml(svg: string, title: string, proofs: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
figure { margin: 0; overflow-x: auto }
svg { min-width: 44rem; width: 100% }
</style>
<h1>${escape(title)}</h1>
<figure>
${svg}</figure>
<h2>How each idle was proved</h2>
<ul>
${proofs.map((text) => `<li>${escape(text)}</li>`).join('\n')}
</ul>
</html>
`
}

interface Lane {
  readonly top: number
  readonly x: (at: number) => number
  readonly to: number
  readonly marks: readonly Mark[]
}

function lane(name: string, samples: readonly Sample[], { top, x, to, marks }: Lane): string {
  const most = Math.max(4, ...samples.map(({ active, old, queued }) => active + old + queued))
  const base = top + HEAD + CHART
  const y = (count: number): number => base - (count / most) * CHART
  const until = (n: number): number => samples[n + 1]?.at ?? to
  const layers = (['active', 'old', 'queued'] as const).map((part, n, parts) => {
    const below = parts.slice(0, n)
    const floor = (one: Sample): number => below.reduce((sum, key) => sum + one[key], 0)
    const boxes = samples.flatMap((one, i) => {
      if (one[part] === 0) return []
      const [left, right] = [x(one.at), x(until(i))]
      const [high, low] = [y(floor(one) + one[part]), y(floor(one))]
      return `M${fix(left)} ${fix(low)}V${fix(high)}H${fix(right)}V${fix(low)}Z`
    })
    return boxes.length === 0 ? '' : `<path d="${boxes.join('')}" fill="${COLOURS[part] ?? ''}"/>`
  })
  const bands = runs(samples, to).map(({ from, end, own, phase }) => {
    const width = Math.max(1, x(end) - x(from))
    const label = width > 54 ? `${own}${phase === 'idle' ? ', idle' : ''}` : ''
    return (
      `<rect x="${fix(x(from))}" y="${base + 3}" width="${fix(width)}" height="16" fill="${COLOURS[own] ?? '#fff'}"/>` +
      (label === '' ? '' : `<text x="${fix(x(from) + 4)}" y="${base + 15}">${label}</text>`)
    )
  })
  const own = marks.filter(({ server }) => server === name)
  return [
    `<text x="12" y="${base - 20}" font-weight="600">${escape(name)}</text>`,
    `<text x="${LEFT - 6}" y="${base - CHART + 8}" text-anchor="end" fill="#777">${most}</text>`,
    `<path d="M${LEFT} ${base}H${WIDTH - RIGHT}" stroke="#bbb"/>`,
    ...layers,
    ...bands,
    ...own.map(({ at, text }, n) => flag(x(at), top + 12 + (n % 3) * 13, base, text)),
  ].join('\n')
}

interface Stretch {
  readonly from: number
  readonly end: number
  readonly own: Sample['own']
  readonly phase: Sample['phase']
}

/** Stretches of time in which state and phase were the same. */
function runs(samples: readonly Sample[], to: number): readonly Stretch[] {
  const all: Stretch[] = []
  for (const { at, own, phase } of samples) {
    const last = all.at(-1)
    if (last?.own === own && last.phase === phase) continue
    if (last !== undefined) all[all.length - 1] = { ...last, end: at }
    all.push({ from: at, end: to, own, phase })
  }
  return all
}

function flag(at: number, top: number, base: number, text: string): string {
  const right = at < WIDTH - 200
  return (
    `<path d="M${fix(at)} ${top - 9}V${base}" stroke="#b3261e"/>` +
    `<text x="${fix(at + (right ? 4 : -4))}" y="${top}" fill="#b3261e" text-anchor="${right ? 'start' : 'end'}">${escape(text)}</text>`
  )
}

function across(at: number, height: number, text: string): string {
  return (
    `<path d="M${fix(at)} ${TOP - 8}V${height - 30}" stroke="#6a1b9a" stroke-dasharray="4 3"/>` +
    `<text x="${fix(at + 4)}" y="${TOP - 2}" fill="#6a1b9a">${escape(text)}</text>`
  )
}

function legend(): string {
  const words = [
    ['active', 'in flight'],
    ['old', 'in flight in an old worker'],
    ['queued', 'queued'],
    ['ready', 'ready'],
    ['drain', 'drain'],
    ['maint', 'maint'],
  ] as const
  let left = LEFT
  return words
    .map(([key, text]) => {
      const at = left
      left += 34 + text.length * 6
      return `<rect x="${fix(at)}" y="8" width="12" height="12" fill="${COLOURS[key] ?? ''}"/><text x="${fix(at + 16)}" y="18">${text}</text>`
    })
    .join('')
}

function axis(from: number, to: number, x: (at: number) => number, y: number): string {
  const seconds = (to - from) / 1000
  const every = [1, 2, 5, 10, 30, 60].find((step) => seconds / step <= 12) ?? 120
  const ticks: string[] = []
  for (let at = 0; at <= seconds; at += every)
    ticks.push(
      `<text x="${fix(x(from + at * 1000))}" y="${y + 12}" text-anchor="middle">${at} s</text>`,
    )
  return `<g fill="#555">${ticks.join('')}</g>`
}

function fix(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
