import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { load } from './events.js'
import { numberRows, pageOf } from './pages.js'

const UNITS = 10_000

const looks = fc
  .array(
    fc.record({
      after: fc.integer({ min: 1, max: 5_000 }),
      active: fc.nat(300),
      queued: fc.nat(50),
      complete: fc.boolean(),
    }),
    { minLength: 1, maxLength: 300 },
  )
  .map((all) => {
    let now = 0
    return all.map(({ after, ...more }) => load((now += after), more))
  })

/** The corners of a line, as numbers again. */
function corners(html: string, name: string, most: number): readonly (readonly [number, number])[] {
  const path = new RegExp(`<path class="${name}" d="([^"]*)"`).exec(html)?.[1] ?? ''
  const found: [number, number][] = []
  let [x, y] = [0, 0]
  for (const [, step, first, second] of path.matchAll(/([MVH])([\d.]+)(?: ([\d.]+))?/g)) {
    if (step === 'H') {
      found.push([x, Math.round(((UNITS - y) / UNITS) * Math.max(1, most))])
      x = Number(first)
    } else if (step === 'V') y = Number(first)
    else [x, y] = [Number(first), Number(second)]
  }
  return found
}

it('every number of a picture stands in its table', () => {
  fc.assert(
    fc.property(looks, (events) => {
      const html = pageOf(events)
      const rows = numberRows(html).map((cells) => ({
        at: Date.parse(`2026-03-01T${cells[0]}Z`),
        active: Number(cells[5]?.replace('≥ ', '')),
        queued: Number(cells[7]?.replace('≥ ', '')),
        complete: !cells[5]!.startsWith('≥'),
      }))
      const [from, to] = [Date.parse(events[0]!.at), Date.parse(events.at(-1)!.at)]
      const x = (at: number): number => (at - from) / Math.max(1, to - from)
      const most = Math.max(...rows.map(({ active, queued }) => Math.max(active, queued)))
      expect(html).toContain(`>${most}</text>`)
      const expected = (key: 'active' | 'queued', shows: (row: (typeof rows)[0]) => boolean) =>
        rows.filter(shows).map((row) => [x(row.at), row[key]])
      const drawn = (name: string) =>
        corners(html, name, most).map(([at, count]) => [at / UNITS, count])
      for (const [name, rowsOf] of [
        ['active', expected('active', ({ complete }) => complete)],
        ['bound', expected('active', ({ complete }) => !complete)],
        ['queued', expected('queued', ({ queued }) => queued > 0)],
      ] as const) {
        const points = drawn(name)
        expect(points.map(([, count]) => count)).toEqual(rowsOf.map(([, count]) => count))
        for (const [i, [place]] of points.entries()) expect(place).toBeCloseTo(rowsOf[i]![0]!, 4)
      }
    }),
    { numRuns: 50 },
  )
})

it('no page has an invalid number', () => {
  fc.assert(
    fc.property(fc.oneof(looks, fc.constant([load(0)])), (events) => {
      expect(pageOf(events)).not.toMatch(/NaN|Infinity|undefined/)
    }),
    { numRuns: 50 },
  )
})
