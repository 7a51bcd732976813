/**
 * The one list of what the package exports. From it come the `exports` of package.json, the build's entries, the
 * budget of each entry and what each may import from outside; tests compare all of them with the built package.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Entry {
  /** As a user writes it after `drainable/`; empty for the package itself. */
  readonly name: string
  /** From the root of the repository. */
  readonly source: string
  /** What it may load from outside the package, Node's own modules aside. */
  readonly externals: readonly string[]
  /** Upper bound of all its own code, chunks included, in kilobytes and not minified. */
  readonly kilobytes: number
}

const core = ['eventemitter3', 'zod']
const http = [...core, 'undici']

export const entries: readonly Entry[] = [
  entry('', 'src/index.ts', core, 255),
  entry('provider', 'src/provider/index.ts', [], 5),
  entry('machine', 'src/machine.ts', [], 85),
  entry('endpoints', 'src/endpoints/index.ts', [], 70),
  entry('haproxy-runtime', 'src/adapters/haproxy-runtime/index.ts', core, 300),
  entry('haproxy-dataplane', 'src/adapters/haproxy-dataplane/index.ts', [...http, 'p-retry'], 325),
  entry('f5-bigip', 'src/adapters/f5-bigip/index.ts', http, 310),
  entry('citrix-adc', 'src/adapters/citrix-adc/index.ts', http, 290),
  entry('envoy', 'src/adapters/envoy/index.ts', http, 340),
  entry('envoy/grpc', 'src/adapters/envoy/grpc/index.ts', ['@grpc/grpc-js', 'zod'], 305),
  entry('testing', 'src/testing/index.ts', [], 75),
  entry('testing/haproxy-runtime', 'src/testing/haproxy-runtime/index.ts', [], 110),
  entry('testing/haproxy-dataplane', 'src/testing/haproxy-dataplane/index.ts', [], 88),
  entry('testing/f5-bigip', 'src/testing/f5-bigip/index.ts', [], 95),
  entry('testing/citrix-adc', 'src/testing/citrix-adc/index.ts', [], 85),
  entry('testing/envoy', 'src/testing/envoy/index.ts', ['zod'], 82),
]

function entry(
  name: string,
  source: string,
  externals: readonly string[],
  kilobytes: number,
): Entry {
  return { name, source, externals, kilobytes }
}

/** The repository's root. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Those whose source is there. Equal to `entries` in a finished tree; a test says so. */
export const present = entries.filter((item) => existsSync(`${root}${item.source}`))

/** `.` or `./name`, as package.json writes it. */
export function subpath(item: Entry): string {
  return item.name === '' ? '.' : `./${item.name}`
}

/** As a user imports it. */
export function specifier(item: Entry): string {
  return item.name === '' ? 'drainable' : `drainable/${item.name}`
}

/** The path of the built file in `dist`, without its ending. */
export function output(item: Entry): string {
  return item.name === '' ? 'index' : item.name
}

/** The `exports` of package.json. Each kind of module has its own declarations: they differ in what they import. */
export function exportsField(): Record<string, unknown> {
  const fields = entries.map((item) => {
    const base = `./dist/${output(item)}`
    return [
      subpath(item),
      {
        import: { types: `${base}.d.ts`, default: `${base}.js` },
        require: { types: `${base}.d.cts`, default: `${base}.cjs` },
      },
    ] as const
  })
  return { ...Object.fromEntries(fields), './package.json': './package.json' }
}
