import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/package/entries.ts'
import { blocksOf, pages } from './pages.js'
import type { Page } from './pages.js'

/** The page without its fenced blocks and code spans, in which nothing is a link. */
function prose(page: Page): string {
  return page.text.replace(/^(\s*)(`{3,})[\s\S]*?^\s*\2\s*$/gm, '').replace(/`[^`\n]*`/g, '')
}

function linksOf(page: Page): string[] {
  const text = prose(page)
  const inline = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g)]
  const named = [...text.matchAll(/^\s*\[[^\]]+\]:\s*(\S+)/gm)]
  const html = [...text.matchAll(/\b(?:href|src)="([^"]+)"/g)]
  return [...inline, ...named, ...html].map((match) => match[1] ?? '')
}

/** The anchors of a page's headings, as the usual renderers of Markdown make them. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>()
  const plain = text.replace(/^(\s*)(`{3,})[\s\S]*?^\s*\2\s*$/gm, '')
  const anchors = [...plain.matchAll(/^#{1,6} +(.+?)\s*#*$/gm)].map((match) => {
    const words = (match[1] ?? '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = words.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  })
  const html = [...text.matchAll(/\b(?:id|name)="([^"]+)"/g)].map((match) => match[1] ?? '')
  return new Set([...anchors, ...html])
}

function isBroken(page: Page, link: string): boolean {
  if (/^[a-z][a-z+.-]*:/i.test(link)) return false
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, page.path) : join(root, dirname(page.path), path)
  if (relative(root, target).startsWith('..') || !existsSync(target)) return true
  if (anchor === undefined || statSync(target).isDirectory() || !target.endsWith('.md'))
    return false
  return !anchorsOf(readFileSync(target, 'utf8')).has(anchor)
}

describe('links', () => {
  it.each(pages.map((page) => [page.path, page] as const))(
    'every link of %s leads somewhere',
    (_, page) => {
      expect(linksOf(page).filter((link) => isBroken(page, link))).toEqual([])
    },
  )
})

describe('commands', () => {
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    scripts: Record<string, string>
  }

  it.each(pages.map((page) => [page.path, page] as const))(
    'every npm script that %s names exists',
    (_, page) => {
      const code = [...blocksOf(page).map((block) => block.text), page.text]
      const named = code.flatMap((text) =>
        [...text.matchAll(/\bnpm run(?: -s)? ([\w:-]+)/g)].map((match) => match[1] ?? ''),
      )
      expect(named.filter((name) => !(name in scripts))).toEqual([])
    },
  )
})
