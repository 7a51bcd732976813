/** The pages that people read, and the examples in them. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from '../../scripts/package/entries.ts'

export interface Page {
  /** From the root of the repository. */
  readonly path: string
  readonly text: string
}

export interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly text: string
  /** Declarations that the reader is told about in words: `<!-- given: declare function install(): void -->`. */
  readonly given: string
  /** Written `<!-- continues -->`: it goes on where the block before it on the page ended. */
  readonly continues: boolean
}

export const pages: readonly Page[] = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...markdownIn('docs'),
  ...markdownIn('src'),
]
  .filter((path) => existsSync(join(root, path)))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

/** Every comment of the sources that holds an example, with the stars taken off. */
export const comments: readonly Page[] = filesIn('src', '.ts')
  .filter((path) => !path.includes('/gen/'))
  .map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    // Everything else becomes empty lines, so that a line number is the one in the source.
    let inside = false
    const lines = text.split('\n').map((line) => {
      if (line.trimStart().startsWith('/**')) inside = true
      const kept = inside ? line.replace(/^\s*(?:\/\*\*|\*(?!\/)) ?/, '') : ''
      if (line.includes('*/')) inside = false
      return kept
    })
    return { path, text: lines.join('\n') }
  })
  .filter((page) => page.text.includes('```'))

export function blocksOf(page: Page): readonly Block[] {
  const blocks: Block[] = []
  const given: string[] = []
  let continues = false
  let open: { line: number; language: string; fence: string; lines: string[] } | undefined
  page.text.split('\n').forEach((line, index) => {
    if (open !== undefined) {
      if (line.trim() === open.fence) {
        blocks.push({
          page: page.path,
          line: open.line,
          language: open.language,
          text: open.lines.join('\n'),
          given: given.join('\n'),
          continues,
        })
        open = undefined
        given.length = 0
        continues = false
      } else open.lines.push(line)
      return
    }
    const fence = /^\s*(`{3,})(\S*)/.exec(line)
    const comment = /^\s*<!-- (given:|continues)(.*)-->\s*$/.exec(line)
    if (fence) {
      open = { line: index + 1, language: fence[2] ?? '', fence: fence[1] ?? '', lines: [] }
    } else if (comment?.[1] === 'continues') continues = true
    else if (comment) given.push((comment[2] ?? '').trim())
    else if (line.trim() !== '') {
      given.length = 0
      continues = false
    }
  })
  if (open !== undefined) throw new Error(`${page.path}:${open.line}: this block is never closed`)
  return blocks
}

function markdownIn(folder: string): string[] {
  return filesIn(folder, '.md').filter((path) => !path.startsWith('docs/api/'))
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => relative(root, join(root, folder, name)))
    .sort()
}
