import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Chromium, findChromium, type ScreenOptions } from '../../support/chromium.js'
import { DrainableError } from 'drainable'
import { at, drainReport, goodDrain, memberReport, web1 } from './events.js'
import { pageOf } from './pages.js'

const long = { pool: 'a-pool-'.repeat(12), member: 'a_member_'.repeat(12), balancer: 'edge' }
const html = pageOf(
  [
    ...goodDrain(),
    ...goodDrain(long),
    {
      type: 'fault',
      at: at(2_500),
      ref: web1,
      error: new DrainableError('UNREACHABLE', 'x'.repeat(400)),
    },
  ],
  {
    verb: 'drain',
    exitCode: 0,
    changed: true,
    balancer: { name: 'haproxy-runtime', instance: `unix:/${'run/'.repeat(40)}` },
    report: drainReport(memberReport(), memberReport({ ref: long })),
  },
)

/** What sticks out of the page, what text is not seen, and the least contrast of its text. */
const QUESTION = `(() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const c = part / 255
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b)
    return (high + 0.05) / (low + 0.05)
  }
  const page = getComputedStyle(document.body).backgroundColor
  const all = [...document.querySelectorAll('body :is(h1, h2, h3, p, li, dt, dd, th, td, text)')]
  const shown = all.filter((item) => item.textContent.trim() !== '' && item.getBoundingClientRect().width > 0)
  const ratios = [...document.querySelectorAll('h1, p, li, dt, td, th')].map((item) => contrast(getComputedStyle(item).color, page))
  return {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    unseen: all.filter((item) => item.textContent.trim() !== '' && !shown.includes(item)).length,
    shown: shown.length,
    contrast: Math.min(...ratios),
    lanes: [...document.querySelectorAll('svg.lane[role=img]')].map((lane) => lane.getBoundingClientRect().width),
    line: document.querySelector('main path.active').getBoundingClientRect().width,
    page,
  }
})()`

interface Answer {
  readonly overflow: number
  readonly unseen: number
  readonly shown: number
  readonly contrast: number
  readonly lanes: readonly number[]
  readonly line: number
  readonly page: string
}

const program = findChromium()

describe.skipIf(program === undefined)('a report in Chromium', () => {
  let chromium: Chromium
  beforeAll(async () => {
    chromium = await Chromium.start(program ?? '')
  })
  afterAll(() => chromium[Symbol.asyncDispose]())

  const SCREENS: readonly (readonly [string, ScreenOptions])[] = [
    ['a phone', { width: 390 }],
    ['a screen', { width: 1_280 }],
    ['a screen by night', { width: 1_280, scheme: 'dark' }],
    ['paper', { width: 700, media: 'print' }],
    ['paper, printed by night', { width: 700, media: 'print', scheme: 'dark' }],
  ]
  const ask = (screen: ScreenOptions): Promise<Answer & { console: unknown; requests: unknown }> =>
    chromium.ask<Answer>(html, QUESTION, screen)

  it.each(SCREENS)('fits on %s, and all of its text is seen', async (_, screen) => {
    const { overflow, unseen, shown, lanes, line } = await ask(screen)
    expect({ overflow, unseen }).toEqual({ overflow: 0, unseen: 0 })
    expect(shown).toBeGreaterThan(50)
    for (const width of [...lanes, line]) expect(width).toBeGreaterThan(screen.width * 0.7)
  })

  it.each(SCREENS)('has enough contrast on %s', async (_, screen) => {
    const { contrast } = await ask(screen)
    expect(contrast).toBeGreaterThanOrEqual(4.5)
  })

  it('logs no error and asks for nothing', async () => {
    const { console, requests } = await ask({ width: 1_280 })
    expect({ console, requests }).toEqual({ console: [], requests: [] })
  })

  it('is dark by night, and white on paper', async () => {
    const pages = await Promise.all(
      SCREENS.slice(2).map(async ([, screen]) => (await ask(screen)).page),
    )
    expect(pages).toEqual(['rgb(20, 23, 27)', 'rgb(255, 255, 255)', 'rgb(255, 255, 255)'])
  })
})
