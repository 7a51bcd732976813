import { describe, expect, it } from 'vitest'
import { Chromium, findChromium } from '../../support/chromium.js'

const program = findChromium()

const page = (script: string): string =>
  `data:text/html,<script>${encodeURIComponent(script)}</script>`

describe.skipIf(program === undefined)('a headless Chromium', () => {
  const screen = { width: 800 }

  it('reads a page that loads late', async () => {
    await using chromium = await Chromium.start(program ?? '')
    const late = page('addEventListener("load", () => { document.title = "there" })')
    const title = await chromium.visit(late, screen, (tab) => tab.ask('document.title'))
    expect(title).toBe('there')
  })

  it('tries a crashed tab once more', async () => {
    await using chromium = await Chromium.start(program ?? '')
    let visits = 0
    const answer = await chromium.visit(page(''), screen, async (tab) => {
      visits += 1
      if (visits === 1) await tab.call('Page.crash')
      return tab.ask('1 + 1')
    })
    expect([visits, answer]).toEqual([2, 2])
  })

  it('names the call whose tab crashed twice', async () => {
    await using chromium = await Chromium.start(program ?? '')
    const visit = chromium.visit(page(''), screen, async (tab) => {
      const asked = tab.ask('new Promise(() => {})')
      asked.catch(() => undefined)
      tab.call('Page.crash').catch(() => undefined)
      return asked
    })
    await expect(visit).rejects.toThrow('Runtime.evaluate: its tab crashed')
  })

  it('names the call that has no answer', async () => {
    await using chromium = await Chromium.start(program ?? '', { limit: 2_000 })
    const visit = chromium.visit(page(''), screen, (tab) => tab.ask('new Promise(() => {})'))
    await expect(visit).rejects.toThrow('Runtime.evaluate: no answer within 2000 ms')
  })

  it('names the call that its end cut short', async () => {
    await using chromium = await Chromium.start(program ?? '')
    const visit = chromium.visit(page(''), screen, async (tab) => {
      const asked = tab.ask('new Promise(() => {})')
      asked.catch(() => undefined)
      await tab.call('Browser.crash').catch(() => undefined)
      return asked
    })
    await expect(visit).rejects.toThrow('the browser closed its socket')
  })
})
