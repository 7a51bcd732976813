import { defineConfig } from 'tsup'
import type { Options } from 'tsup'
import { output, present } from './scripts/package/entries.ts'

const shared: Options = {
  entry: Object.fromEntries(present.map((item) => [output(item), item.source])),
  target: 'node22',
  platform: 'node',
  // Without it each CJS entry would carry classes and module state of its own.
  splitting: true,
}

export default defineConfig([
  { ...shared, format: 'esm', metafile: true },
  {
    ...shared,
    format: 'cjs',
    metafile: true,
    // ESM only: Node itself can require them, but Jest can't.
    noExternal: ['p-retry', 'is-network-error'],
  },
  { ...shared, format: ['esm', 'cjs'], dts: { only: true } },
])
