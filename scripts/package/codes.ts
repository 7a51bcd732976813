/**
 * Writes docs/codes.md: every error code and every reason of `why()`, with what is said about each in the source: first
 * what happened, then what to do.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from './entries.ts'

/** One code and the two paragraphs of its comment. */
export interface Code {
  readonly code: string
  readonly cause: string
  readonly remedy: string
}

export const codesPath = 'docs/codes.md'

/** The members of a union of texts, with their comments. */
export function codesOf(path: string, union: string): readonly Code[] {
  const text = readFileSync(join(root, path), 'utf8')
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found = source.statements.find(
    (one): one is ts.TypeAliasDeclaration =>
      ts.isTypeAliasDeclaration(one) && one.name.text === union,
  )
  if (found === undefined || !ts.isUnionTypeNode(found.type))
    throw new Error(`${path} has no union ${union}`)
  const start = text.indexOf('=', found.name.end)
  const whole = text.slice(start, found.end)
  const pattern = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*\|\s*'([^']+)'/g
  const said = new Map(
    [...whole.matchAll(pattern)].map(([, comment = '', code = '']) => [code, comment] as const),
  )
  return found.type.types.map((one) => {
    const code =
      ts.isLiteralTypeNode(one) && ts.isStringLiteral(one.literal) ? one.literal.text : ''
    const lines = (said.get(code) ?? '').split('\n').map((line) => line.replace(/^\s*\* ?/, ''))
    const [cause = '', remedy = ''] = lines
      .join('\n')
      .trim()
      .split(/\n\s*\n/)
      .map((paragraph) => paragraph.replaceAll(/\s+/g, ' '))
    return { code, cause, remedy }
  })
}

function table(codes: readonly Code[]): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|')
  const rows = codes.map(
    ({ code, cause, remedy }) => `| \`${code}\` | ${cell(cause)} | ${cell(remedy)} |`,
  )
  return ['| code | what happened | what to do |', '| --- | --- | --- |', ...rows].join('\n')
}

/** The page as it should be. */
export function codesPage(): string {
  return `# Every code

<!-- Written by npm run docs from src/provider/error.ts and src/provider/report.ts: edit those. -->

A program decides by the code, a person reads the text. Both lists are closed: a new code comes with a new minor version.

## Errors

\`isDrainableError(error, 'DRAIN_TIMEOUT')\` recognizes an error by its code, in ESM and CommonJS alike.

- \`retryable\` says whether the same call can succeed later.
- \`retryAfter\` is for how many milliseconds the balancer asked to be left alone (\`Retry-After\`); nothing was sent.
- \`report\` or \`roll\` is the report of the drain or roll that the error ended.
- An error never holds a secret.
- An abort has no code: an aborted call rejects with \`signal.reason\`.
- The command turns errors and outcomes into an [exit status](command.md#exit-status).

${table(codesOf('src/provider/error.ts', 'ErrorCode'))}

## Reasons

\`why()\` of a handle, and the \`why\` of an event \`load\` and of a report, say why a member is not idle yet. The most telling reason
comes first. Each has a text, and most have a \`hint\` with one step that can help.

${table(codesOf('src/provider/report.ts', 'WhyCode'))}
`
}

/** Brings the page up to date. */
export function writeCodes(): void {
  writeFileSync(join(root, codesPath), codesPage())
}
