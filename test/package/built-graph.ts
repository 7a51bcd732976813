/** What each built entry loads: its own files, chunks included, and packages from outside. */
import { readFileSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import { root } from '../../scripts/package/entries.ts'

export interface Loaded {
  readonly files: readonly string[]
  readonly packages: readonly string[]
  readonly bytes: number
}

export function loadedByBuilt(file: string): Loaded {
  const files = new Set<string>()
  const packages = new Set<string>()
  const visit = (path: string): void => {
    if (files.has(path)) return
    files.add(path)
    for (const name of specifiers(readFileSync(path, 'utf8'))) {
      if (name.startsWith('.')) visit(join(dirname(path), name))
      else if (!name.startsWith('node:') && !builtinModules.includes(name)) {
        packages.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'))
      }
    }
  }
  visit(join(root, 'dist', file))
  const bytes = [...files].reduce((sum, path) => sum + statSync(path).size, 0)
  return { files: [...files], packages: [...packages].sort(), bytes }
}

/** The build writes imports at the head of a line, and never in any other form. */
function specifiers(text: string): string[] {
  const found: string[] = []
  for (const match of text.matchAll(
    /^(?:import|export)\b[^'";]*?["']([^"']+)["']|\brequire\(["']([^"']+)["']\)|\bimport\(["']([^"']+)["']\)/gm,
  )) {
    found.push(match[1] ?? match[2] ?? match[3] ?? '')
  }
  return found
}
