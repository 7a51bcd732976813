import { describe, expect, it } from 'vitest'
import type { Recording, Sample } from '../../../scripts/demo/recording.ts'
import { toHtml, toSvg } from '../../../scripts/demo/timeline.ts'

const sample = (at: number, more: Partial<Sample> = {}): Sample => ({
  at,
  own: 'ready',
  phase: 'active',
  active: 0,
  old: 0,
  queued: 0,
  ...more,
})

const recording: Recording = {
  samples: new Map([
    [
      'web1',
      [
        sample(1_000, { active: 2 }),
        sample(2_000, { own: 'drain', phase: 'draining', active: 1, old: 3, queued: 2 }),
        sample(3_000, { own: 'maint', phase: 'idle' }),
      ],
    ],
    ['web2', []],
  ]),
  marks: [
    { at: 1_500, text: 'drain', server: 'web1' },
    { at: 2_500, text: 'reload <all>' },
    { at: 4_000, text: 'ready', server: 'web1' },
  ],
}

describe('the timeline of the demo', () => {
  const svg = toSvg(recording, 'a & b')

  it('has a lane for each server, with its states', () => {
    for (const text of ['web1', 'web2', 'drain', 'maint, idle']) expect(svg).toContain(`>${text}<`)
  })

  it('draws work in flight, in an old worker and queued as a stack', () => {
    const tops = ['#2b66b1', '#c07f12', '#9a9a9a'].map((colour) => {
      const path = new RegExp(`<path d="([^"]+)" fill="${colour}"`).exec(svg)?.[1] ?? ''
      return Number(/V([\d.]+)H[^M]*$/.exec(path)?.[1])
    })
    expect(tops).toEqual(tops.toSorted((a, b) => b - a))
    expect(new Set(tops).size).toBe(3)
  })

  it('draws a mark without a server across all lanes, with escaped text', () => {
    expect(svg).toContain('reload &lt;all>')
    expect(svg).toContain('<title>a &amp; b</title>')
  })

  it('has no invalid number', () => {
    expect(svg).not.toMatch(/NaN|Infinity|undefined/)
  })

  it('is part of a page with the proofs', () => {
    expect(toHtml(svg, 'a & b', ['web/web1: 0 in flight'])).toContain(
      '<li>web/web1: 0 in flight</li>',
    )
  })
})
