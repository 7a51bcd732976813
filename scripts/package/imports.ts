import { specifier, type Entry } from './entries.ts'

/** A module that imports every entry: what a user's compiler is given to resolve. */
export function importsOf(entries: readonly Entry[]): string {
  const lines = entries.map((item, i) => `import * as entry${i} from '${specifier(item)}'`)
  return `${lines.join('\n')}\n\nexport const all = [${entries.map((_, i) => `entry${i}`).join(', ')}]\n`
}
