import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

/** Tests import the package by its public names; the names resolve to the sources by the paths of tsconfig.json. */
const { compilerOptions } = JSON.parse(
  readFileSync(new URL('./tsconfig.json', import.meta.url), 'utf8'),
) as {
  compilerOptions: { paths: Record<string, [string]> }
}
const alias = Object.entries(compilerOptions.paths).map(([name, [path]]) => ({
  find: new RegExp(`^${name}$`),
  replacement: new URL(path, import.meta.url).pathname,
}))

/** One project a kind of test, so that each can be run alone: `vitest run --project unit`. */
function project(name: string, timeout: number, extra: object = {}) {
  return {
    extends: true as const,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      testTimeout: timeout,
      hookTimeout: timeout,
      ...extra,
    },
  }
}

export default defineConfig({
  resolve: { alias },
  test: {
    pool: 'forks',
    projects: [
      project('unit', 20_000),
      project('contract', 60_000),
      project('engine', 120_000, { fileParallelism: false }),
      project('docs', 120_000),
      project('package', 300_000, { fileParallelism: false }),
      {
        ...project('types', 60_000),
        test: {
          name: 'types',
          include: [],
          typecheck: { enabled: true, only: true, include: ['test/types/**/*.test-d.ts'] },
        },
      },
    ],
  },
})
