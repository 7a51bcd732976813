/**
 * A plugin of typedoc for the guides: a page is called what its first heading says, stands with its like, and its links to
 * source files lead to the repository. Typedoc itself names a page after its file, and copies each linked file beside the
 * pages.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import {
  Converter,
  type Application,
  type CommentDisplayPart,
  type Context,
  type DocumentReflection,
} from 'typedoc'

/** Where a page stands in the navigation, by its path. The first that fits. */
const GROUPS: readonly (readonly [RegExp, string])[] = [
  [/adapters\//, 'Adapters'],
  [/decisions\//, 'Decisions'],
  [/CHANGELOG|CONTRIBUTING|SECURITY|development|change-an-adapter|src\/core/, 'Project'],
  [/./, 'Guides'],
]

const { homepage } = JSON.parse(readFileSync('package.json', 'utf8')) as { homepage: string }
const repository = homepage.replace(/#.*$/, '')

/** Called by typedoc. */
export function load(app: Application): void {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, page: DocumentReflection) => {
    const path = page.name
    page.frontmatter['category'] = GROUPS.find(([pattern]) => pattern.test(path))?.[1] ?? ''
    page.name = headingOf(page.content) ?? path
    for (const part of page.content) leadToRepository(part, dirname(path))
  })
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }: Context) => {
    // Here typedoc prints the name of the project as the heading; on the other pages it prints none.
    const [first] = project.readme ?? []
    if (first?.kind === 'text') first.text = first.text.replace(HEADING, '')
  })
}

const HEADING = /^(?:<!--[^]*?-->\s*)?#\s+(.+)\n+/

function headingOf([first]: readonly CommentDisplayPart[]): string | undefined {
  const heading = first?.kind === 'text' ? HEADING.exec(first.text) : null
  return heading?.[1]?.replaceAll('`', '')
}

/** A link to what is neither a page nor a picture. */
function leadToRepository(part: CommentDisplayPart, from: string): void {
  if (part.kind !== 'relative-link' || /\.(md|svg|png)(#.*)?$/.test(part.text)) return
  const url = `${repository}/blob/main/${join(from, part.text)}`
  Object.assign(part, { kind: 'text', text: url })
}
