/** What a bundler makes of a program that uses the built package. */
import { readFileSync } from 'node:fs'
import { build } from 'esbuild'
import { root } from '../../../scripts/package/entries.ts'

/** The least that a program can want: to know an error, and to read a duration. */
export const SMALLEST = `import { isDrainableError, toDuration } from 'drainable'
console.log(isDrainableError, toDuration)`

/** The first script of the README, as it stands there. */
export function readmeScript(): string {
  const readme = readFileSync(`${root}README.md`, 'utf8')
  return /## A first script[^]*?```ts\n([^]*?)```/.exec(readme)?.[1] ?? ''
}

/** Bytes of a program, minified by esbuild for Node, with `undici` left outside. */
export async function bundledSize(program: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: {
      contents: program.replaceAll(
        /'drainable(?:\/([^']+))?'/g,
        (_, name = 'index') => `'./dist/${String(name)}.js'`,
      ),
      resolveDir: root,
      loader: 'ts',
    },
    ...{ bundle: true, minify: true, write: false, logLevel: 'error' },
    ...{ platform: 'node', target: 'node24', format: 'esm', external: ['undici'] },
  })
  return outputFiles[0]?.contents.byteLength ?? Number.NaN
}
