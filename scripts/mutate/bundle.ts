import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { instrument, type Mutant } from './mutants.ts'

const PLACE = 'import.meta.dirname'

/** Bundles the tests with the instrumented sources into one script. */
export async function bundle(
  root: string,
  sources: readonly string[],
  tests: readonly string[],
  folder: string,
): Promise<{ readonly path: string; readonly mutants: readonly Mutant[] }> {
  const mutants: Mutant[] = []
  const code = new Map<string, string>()
  for (const file of sources) {
    const made = instrument(file, readFileSync(join(root, file), 'utf8'), mutants.length + 1)
    mutants.push(...made.mutants)
    code.set(file, made.code)
  }
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as {
    compilerOptions: { paths: Record<string, [string]> }
  }
  const plugin: Plugin = {
    name: 'mutants',
    setup(on) {
      on.onResolve({ filter: /^vitest$/ }, () => ({ path: 'vitest', namespace: 'suite' }))
      on.onLoad({ filter: /.*/, namespace: 'suite' }, () => ({
        // Helpers import `vi`; no test of these calls it.
        contents:
          'export const { describe, test, it, expect, beforeEach, afterEach, vi } = __suite',
      }))
      on.onResolve({ filter: /^drainable/ }, ({ path }) => {
        const own = compilerOptions.paths[path]?.[0]
        return own === undefined ? undefined : { path: join(root, own) }
      })
      on.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = code.get(relative(root, path).split(sep).join('/'))
        if (contents !== undefined) return { contents, loader: 'ts' }
        // A test may read files beside it, and a script has no place of its own.
        const text = readFileSync(path, 'utf8')
        if (!text.includes(PLACE)) return undefined
        return { contents: text.replaceAll(PLACE, JSON.stringify(dirname(path))), loader: 'ts' }
      })
    },
  }
  const entry = tests.map((file) => `import ${JSON.stringify(join(root, file))}`).join('\n')
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'node',
    target: 'node22',
    ignoreAnnotations: true, // package.json says that nothing has side effects; tests do
    logLevel: 'error',
    plugins: [plugin],
  })
  const path = join(folder, 'suite.js')
  writeFileSync(path, outputFiles[0]?.contents ?? '')
  return { path, mutants }
}
