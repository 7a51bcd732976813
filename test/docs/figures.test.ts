import { existsSync, globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { figureOf, toPlot, withFigures, type Results } from '../../scripts/bench/page.ts'
import { benchmarkFiles, readResults } from '../../scripts/bench/write.ts'
import { root } from '../../scripts/package/entries.ts'

const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }

/** A number with a unit of what is measured, in the words of a page. */
const FIGURE = /\b\d[\d.,]*\s?(?:ms|µs|s|kB|MB|%|times as)(?![\w-])/

/** What a reader reads, without programs. */
function prose(page: string): string {
  return page.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '``')
}

describe('docs/benchmarks.md', () => {
  it.each([...benchmarkFiles(readResults())])(
    '%s is as it was measured last (npm run bench -- all)',
    (path, text) => {
      expect(read(path)).toBe(text)
    },
  )

  it('says of each table what it does not show', () => {
    const tables = read('docs/benchmarks.md').split(/^## /m).slice(1)
    expect(tables.length).toBeGreaterThan(4)
    expect(tables.filter((table) => !/\*\*Not shown\.\*\* \S/.test(table))).toEqual([])
  })
})

describe('the README', () => {
  it('quotes figures of docs/benchmarks.md', () => {
    expect(read('README.md').match(/<!-- figure: /g)?.length).toBeGreaterThan(2)
  })

  it('has no figure but those', () => {
    const others = prose(read('README.md')).replaceAll(
      /<!-- figure: [^>]+-->[^<]*<!-- \/ -->\s*\w+/g,
      '',
    )
    expect(FIGURE.exec(others)?.[0]).toBeUndefined()
  })
})

/** Decisions are dated: their figures are those of that day, and each names its test. */
const pages = globSync('docs/**/*.md', { cwd: root }).filter(
  (path) => !/^docs\/(api|decisions)\//.test(path) && path !== 'docs/benchmarks.md',
)

/** Words that only stand beside what somebody has measured; the time of a limit or of an option has others. */
const MEASURED =
  /\bmeasured\b|\b(?:a|one) core\b|\b(?:arrived|came)\s(?:up\sto|within)\b|\bhalf of the\b|\b99 % (?:within|after)\b|\btakes?\sabout\b|\bthe peak\b/i

/** A list belongs to the paragraph above it, which names its script. */
const BETWEEN_PARAGRAPHS = /\n\s*\n(?!\s*(?:-|\d+[.]) )/

/** A command or a file of this repository. */
function namesScript(paragraph: string): boolean {
  const commands = [...paragraph.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name)
  const files = [...paragraph.matchAll(/\b((?:test|bench|scripts|examples)\/[\w./-]+)/g)]
  return (
    commands.some((name) => name !== undefined && name in scripts) ||
    files.some(([, path = '']) => existsSync(`${root}${path.replace(/[.]$/, '')}`))
  )
}

describe('a figure that was measured', () => {
  it.each(pages)('in %s names the script that gives it', (path) => {
    const wild = read(path)
      .split(BETWEEN_PARAGRAPHS)
      .filter((part) => MEASURED.test(prose(part)) && FIGURE.test(prose(part)))
      .filter((part) => !namesScript(part))
    expect(wild).toEqual([])
  })
})

describe('a quoted figure', () => {
  const results: Results = {
    machine: { day: '', cpu: '', cores: 2, gigabytes: 1, system: '', node: '', load: [0, 0] },
    tables: [
      {
        ...{ id: 'a', title: 'A', about: '', notShown: '' },
        columns: ['by', 'ms'],
        rows: [['us', 1234]],
        plot: { column: 'ms', axis: 'ms' },
      },
    ],
  }

  it('is put in the place of the one before', () => {
    const page = 'It takes <!-- figure: a/us/ms -->7<!-- / --> ms'
    expect(withFigures(page, results)).toBe('It takes <!-- figure: a/us/ms -->1,234<!-- / --> ms')
  })

  it('that nobody measures is an error', () => {
    expect(() => figureOf(results, 'a/them/ms')).toThrow('there is no figure a/them/ms')
  })

  it('is a bar of the plot', () => {
    expect(toPlot(results.tables[0]!)).toContain('>1,234</text>')
  })
})
