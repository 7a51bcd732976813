import { readFileSync } from 'node:fs'
import { defineConfig } from 'tsup'
import type { Options } from 'tsup'
import { output, present } from './scripts/package/entries.ts'

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string }

const entry = Object.fromEntries(present.map((item) => [output(item), item.source]))

/** See there; `npm run build` removes it again. */
const all = { all: 'scripts/package/all.ts' }

const shared: Options = {
  entry: { ...entry, ...all },
  target: 'node22',
  platform: 'node',
  // Without it each CJS entry would carry classes and module state of its own.
  splitting: true,
}

/** The command is a program and no entry: nothing imports it, so it is built once. */
const program = { cli: 'src/cli/main.ts' }

export default defineConfig([
  {
    ...shared,
    entry: { ...entry, ...all, ...program },
    format: 'esm',
    metafile: true,
    define: { DRAINABLE_VERSION: JSON.stringify(manifest.version) },
  },
  {
    ...shared,
    format: 'cjs',
    metafile: true,
    // ESM only: Node itself can require them, but Jest can't.
    noExternal: ['p-retry', 'is-network-error'],
  },
  { ...shared, entry, format: ['esm', 'cjs'], dts: { only: true } },
])
