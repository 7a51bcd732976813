/** What each built entry loads: its own files, chunks included, and packages from outside. */
import { readFileSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { root } from '../../scripts/package/entries.ts'

export interface Loaded {
  readonly files: readonly string[]
  readonly packages: readonly string[]
  /** Those of them that are loaded with the file, not at the first call. */
  readonly atOnce: readonly string[]
  /** Modules of Node that an import at the head of a file names. */
  readonly builtin: ReadonlySet<string>
  readonly bytes: number
}

export function loadedByBuilt(file: string): Loaded {
  const files = new Set<string>()
  const packages = new Set<string>()
  const atOnce = new Set<string>()
  const builtin = new Set<string>()
  const visit = (path: string): void => {
    if (files.has(path)) return
    files.add(path)
    for (const { name, late } of specifiers(readFileSync(path, 'utf8'))) {
      if (name.startsWith('.')) visit(join(dirname(path), name))
      else if (isBuiltin(name)) {
        if (!late) builtin.add(name.replace(/^node:/, ''))
      } else {
        const known = name.split('/', name.startsWith('@') ? 2 : 1).join('/')
        packages.add(known)
        if (!late) atOnce.add(known)
      }
    }
  }
  visit(join(root, 'dist', file))
  const bytes = [...files].reduce((sum, path) => sum + statSync(path).size, 0)
  return {
    files: [...files],
    packages: [...packages].sort(),
    atOnce: [...atOnce].sort(),
    builtin,
    bytes,
  }
}

/** The build writes imports at the head of a line, those of a first call as `import()` or as `require()` in a `then`. */
function specifiers(text: string): { readonly name: string; readonly late: boolean }[] {
  const forms =
    /^(?:import|export)\b[^'";]*?["']([^"']+)["']|(then\(\(\) => [^;\n]*)?\brequire\(["']([^"']+)["']\)|\bimport\(["']([^"']+)["']\)/gm
  return [...text.matchAll(forms)].map(([, head, then, required, called]) => ({
    name: head ?? required ?? called ?? '',
    late: then !== undefined || called !== undefined,
  }))
}
