import { join } from 'node:path'
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

let problems: ReadonlyMap<string, readonly string[]>

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
  const program = ts.createProgram([...texts.keys()], options, host)
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
})

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
