import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/package/entries.ts'
import { blocksOf, comments, pages } from './pages.js'
import type { Block } from './pages.js'

/** `file` is where the compiler believes the block to be; `shift` is how many lines were put before it. */
interface Checked {
  readonly file: string
  readonly text: string
  readonly shift: number
  readonly block: Block
}

const checked: Checked[] = []
for (const page of [...pages, ...comments]) {
  let before = ''
  for (const block of blocksOf(page)) {
    if (!/^(ts|typescript)$/.test(block.language)) continue
    const head = `${block.continues ? `${before}\n` : ''}${block.given}\nexport {}\n`
    const file = join(root, `.docs-check-${checked.length}.ts`)
    checked.push({
      file,
      text: `${head}${block.text}\n`,
      shift: head.split('\n').length - 1,
      block,
    })
    before = `${block.continues ? `${before}\n` : ''}${block.given}\n${block.text}`
  }
}

/** What a test of `test/types` claims is true if the compiler has no word against it. */
interface Claim {
  readonly file: string
  readonly title: string
  readonly from: number
  readonly to: number
}

const typesFolder = join(root, 'test/types')
const claimFiles = readdirSync(typesFolder).map((name) => join(typesFolder, name))
const claims: readonly Claim[] = claimFiles.flatMap((file) => claimsOf(file))

/** Every `test('title', ...)` of a file, and the file itself for what stands outside of them. */
function claimsOf(file: string): readonly Claim[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const tests = source.statements.flatMap((statement): readonly Claim[] => {
    const call = ts.isExpressionStatement(statement) ? statement.expression : undefined
    if (call === undefined || !ts.isCallExpression(call)) return []
    const [title] = call.arguments
    if (title === undefined || !ts.isStringLiteral(title)) return []
    return [{ file, title: title.text, from: statement.pos, to: statement.end }]
  })
  return [...tests, { file, title: 'all else', from: 0, to: source.end }]
}

/** How long the compiler may take, in milliseconds: 18 s of a processor, which the other suites want too. */
const COMPILING = 600_000

let problems: ReadonlyMap<string, readonly string[]>
let against: ReadonlyMap<Claim, readonly string[]>

beforeAll(() => {
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.json'),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: () => undefined,
    },
  )
  // Stricter than ours: a reader's project may ask for `env['NAME']`.
  const options = { ...config?.options, noEmit: true, noPropertyAccessFromIndexSignature: true }
  const host = ts.createCompilerHost(options)
  const texts = new Map(checked.map((item) => [item.file, item.text]))
  const disk = { ...host }
  host.fileExists = (name) => texts.has(name) || disk.fileExists(name)
  host.readFile = (name) => texts.get(name) ?? disk.readFile(name)
  host.getSourceFile = (name, target, ...rest) => {
    const text = texts.get(name)
    return text === undefined
      ? disk.getSourceFile(name, target, ...rest)
      : ts.createSourceFile(name, text, target, true)
  }
  const program = ts.createProgram([...texts.keys(), ...claimFiles], options, host)
  problems = new Map(
    checked.map((item) => {
      const source = program.getSourceFile(item.file)
      const found = [
        ...program.getSyntacticDiagnostics(source),
        ...program.getSemanticDiagnostics(source),
      ]
      return [item.file, found.map((one) => say(one, item))]
    }),
  )
  // The first claim around a problem has it: a file comes after its tests.
  const told = claimFiles.flatMap((file) => {
    const source = program.getSourceFile(file)
    return [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ].map(({ messageText, start = 0 }) => {
      const around = ({ from, to }: Claim): boolean => start >= from && start <= to
      const claim = claims.find((one) => one.file === file && around(one))
      return { claim, words: ts.flattenDiagnosticMessageText(messageText, '\n') }
    })
  })
  against = new Map(
    claims.map((one) => [one, told.filter(({ claim }) => claim === one).map(({ words }) => words)]),
  )
}, COMPILING)

function say(problem: ts.Diagnostic, { block, shift }: Checked): string {
  const text = ts.flattenDiagnosticMessageText(problem.messageText, '\n')
  const at = problem.file?.getLineAndCharacterOfPosition(problem.start ?? 0).line ?? 0
  return `${block.page}:${block.line + 1 + at - shift}: ${text}`
}

describe('an example in the docs type-checks', () => {
  it.each(checked.map((item) => [`${item.block.page}:${item.block.line}`, item.file] as const))(
    '%s',
    (_, file) => {
      expect(problems.get(file)).toEqual([])
    },
  )

  it('is found in README.md, too', () => {
    expect(checked.some((item) => item.block.page === 'README.md')).toBe(true)
  })
})

describe('the types that a user sees', () => {
  it.each(claims.map((claim) => [`${relative(root, claim.file)}: ${claim.title}`, claim] as const))(
    '%s',
    (_, claim) => {
      expect(against.get(claim)).toEqual([])
    },
  )
})
