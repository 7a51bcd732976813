import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/package/entries.ts'
import { sectionsOf } from '../../scripts/package/search.ts'
import { brokenLinks } from '../../scripts/package/site.ts'
import { Chromium, findChromium } from '../support/chromium.js'

const program = findChromium()
const folder = join(root, 'docs/api')

beforeAll(() => {
  if (!existsSync(folder)) throw new Error('there is no site to look at: run "npm run docs"')
})

it('has no dead link', () => {
  expect(brokenLinks(folder)).toEqual([])
})

it('has no diagram that is left as a program', () => {
  const pages = readdirSync(join(folder, 'documents'))
  const raw = pages.filter((file) =>
    readFileSync(join(folder, 'documents', file), 'utf8').includes('<code class="mermaid"'),
  )
  expect(raw).toEqual([])
})

describe('a section of a page', () => {
  const html = (title: string): string =>
    `<title>${title} | drainable</title><div class="tsd-panel tsd-typography"><h1 id="a">${title}</h1><p>Head</p>
<h2 id="b" class="x">Two &amp; <code>more</code><a href="#b"></a></h2><p>Text &lt;x&gt;</p></div></div>`

  it('is found by what it says, at its own place', () => {
    const [page, section] = sectionsOf(html('Guide'), 'documents/Guide.html')
    expect(page).toMatchObject({ name: 'Guide', url: 'documents/Guide.html' })
    expect(section).toMatchObject({ name: 'Two & more', url: 'documents/Guide.html#b' })
    expect(section?.text).toContain('Text <x>')
  })
})

interface Hit {
  readonly text: string
  readonly href: string
}

/** In the page: ends what it waits for, by its name, before the call that asked is given up. */
const WAITED = `const waited = (what, reject) => setTimeout(() => {
  const status = document.getElementById('tsd-search-status')?.textContent.trim()
  reject(new Error('waited 8 s for ' + what + '; the search says "' + status + '"'))
}, 8_000)`

/**
 * Opens the search field, once its index is there and the page is shown: typedoc hides the body until its script has run, and
 * what is hidden takes no focus.
 */
const OPEN = `new Promise((resolve, reject) => {
  ${WAITED}
  waited('the search field', reject)
  const look = () => {
    const trigger = document.getElementById('tsd-search-trigger')
    const ready = document.getElementById('tsd-search-status').textContent.trim() === ''
    if (!ready || !trigger.checkVisibility()) return setTimeout(look, 10)
    trigger.click()
    document.getElementById('tsd-search-input').focus()
    resolve()
  }
  look()
})`

/** What the reader sees under the search field, once it is there. */
const HITS = `new Promise((resolve, reject) => {
  ${WAITED}
  waited('a result', reject)
  const list = document.getElementById('tsd-search-results')
  const look = () => {
    const links = [...list.querySelectorAll('a')]
    const shown = links.filter((link) => {
      const { width, height, right } = link.getBoundingClientRect()
      return width > 0 && height > 0 && right <= document.documentElement.clientWidth
    })
    if (links.length === 0) return
    resolve(shown.map((link) => ({ text: link.textContent.replace(/\\s+/g, ' ').trim(), href: link.href })))
  }
  new MutationObserver(look).observe(list, { childList: true })
  look()
})`

describe.skipIf(program === undefined)('the search in Chromium', { timeout: 60_000 }, () => {
  let chromium: Chromium

  beforeAll(async () => {
    chromium = await Chromium.start(program ?? '')
  })

  afterAll(async () => {
    await chromium[Symbol.asyncDispose]()
  })

  const typed = (text: string, width: number): Promise<readonly Hit[]> =>
    chromium.visit(pathToFileURL(join(folder, 'index.html')).href, { width }, async (tab) => {
      await tab.ask(OPEN)
      await tab.type(text)
      return tab.ask<readonly Hit[]>(HITS)
    })

  const WORDS = [
    ['DRAIN_TIMEOUT', 'Every_code.html#code-DRAIN_TIMEOUT'],
    ['preStop', 'By_task.html#inside-a-prestop-hook'],
    ['sticky', 'Which_policy_for_which_job.html#persistent-clients'],
    ['Ctrl', 'By_task.html#ctrl-c-puts-it-back'],
    ['escalateAfter', 'drainable.Policy.html#escalateafter'],
    ['ansible', 'From_other_tools.html'],
    ['how many must stay', 'Which_policy_for_which_job.html#how-many-must-stay'],
    ['startDrain', 'functions/drainable.startDrain.html'],
  ] as const

  it.each([
    ...WORDS.map(([text, href]) => [text, 'a desktop', 1_280, href] as const),
    ...WORDS.slice(0, 3).map(([text, href]) => [text, 'a phone', 390, href] as const),
  ])('%s on %s finds its page', async (text, _, width, href) => {
    const hits = await typed(text, width)
    expect(hits.slice(0, 5).map((hit) => hit.href)).toContainEqual(expect.stringContaining(href))
  })

  it('leads from a hit to the place on the page', async () => {
    const [hit] = await typed('DRAIN_TIMEOUT', 390)
    const top = await chromium.visit(hit?.href ?? '', { width: 390 }, (tab) =>
      tab.ask<number>(`document.getElementById('code-DRAIN_TIMEOUT').getBoundingClientRect().top`),
    )
    expect(top).toBeGreaterThanOrEqual(0)
    expect(top).toBeLessThan(900)
  })
})
