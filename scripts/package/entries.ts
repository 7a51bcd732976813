/**
 * The one list of what the package exports. From it come the `exports` of package.json, the `paths` of tsconfig.json, the
 * tables of README.md and docs/README.md, the build's entries, the budget of each entry and what each may import from
 * outside. `npm run entries` writes them, and tests compare all of them with the list and with the built package.
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
  /** Upper bound of all it loads of ours, chunks and what is bundled (zod: 78) included, in kilobytes and not minified. */
  readonly kilobytes: number
  /** Its row in the table of what can be imported. */
  readonly row?: Row
}

interface Row {
  /** What it is, in a few words. */
  readonly about: string
  /** The page about it, from the root of the repository. */
  readonly page: string
}

interface Adapter {
  readonly about: string
  readonly externals: readonly string[]
  readonly kilobytes: number
  readonly fake: { readonly externals?: readonly string[]; readonly kilobytes: number }
}

/** Nothing is installed beside the core: eventemitter3 and zod are bundled, because a CommonJS package costs an import 5 ms. */
const core: readonly string[] = []
const http = [...core, 'undici']

export const entries: readonly Entry[] = [
  entry('', 'src/index.ts', core, 769),
  ...adapter('haproxy-runtime', {
    about: 'HAProxy Runtime API, 2.6 and newer',
    externals: core,
    kilobytes: 615,
    fake: { kilobytes: 132 },
  }),
  ...adapter('haproxy-dataplane', {
    about: 'HAProxy Data Plane API, v2 and v3',
    externals: [...http, 'p-retry'],
    kilobytes: 657,
    fake: { kilobytes: 114 },
  }),
  ...adapter('f5-bigip', {
    about: 'F5 BIG-IP, iControl REST',
    externals: [...http, 'p-retry'],
    kilobytes: 660,
    fake: { kilobytes: 125 },
  }),
  ...adapter('citrix-adc', {
    about: 'Citrix ADC (NetScaler), NITRO',
    externals: [...http, 'p-retry'],
    kilobytes: 646,
    fake: { kilobytes: 116 },
  }),
  ...adapter('envoy', {
    about: 'Envoy, by file, REST or a callback; `drainable/envoy/grpc` by xDS',
    externals: [...http, 'yaml'],
    kilobytes: 723,
    fake: { kilobytes: 199 },
  }),
  entry('envoy/grpc', 'src/adapters/envoy/grpc/index.ts', ['@grpc/grpc-js'], 436),
  ...adapter('envoy-listener', {
    about: 'Envoy itself, as a gateway or a sidecar that is drained',
    externals: http,
    kilobytes: 557,
    fake: { kilobytes: 139 },
  }),
  entry('endpoints', 'src/endpoints/index.ts', [], 92, {
    about: 'Kubernetes endpoint conditions to drains, as a pure function',
    page: 'docs/endpoint-conditions.md',
  }),
  entry('kubernetes', 'src/kubernetes/index.ts', [], 216, {
    about: 'Services, leases and tickets of Kubernetes, for a controller',
    page: 'docs/kubernetes.md',
  }),
  entry('provider', 'src/provider/index.ts', [], 18, {
    about: 'the contract, for an adapter of your own',
    page: 'docs/testing.md',
  }),
  entry('kit', 'src/kit/index.ts', ['p-retry', 'undici'], 168, {
    about: 'what an adapter of your own is built with',
    page: 'docs/adapters/your-own.md',
  }),
  entry('testing', 'src/testing/index.ts', [], 118, {
    about: 'fakes, a clock, the contract suite',
    page: 'docs/testing.md',
  }),
]

function entry(
  name: string,
  source: string,
  externals: readonly string[],
  kilobytes: number,
  row?: Row,
): Entry {
  return { name, source, externals, kilobytes, ...(row && { row }) }
}

/** All that the package has of one product: the adapter, and its fake under `testing/`. */
export function adapter(name: string, { about, externals, kilobytes, fake }: Adapter): Entry[] {
  const page = `docs/adapters/${name}.md`
  return [
    entry(name, `src/adapters/${name}/index.ts`, externals, kilobytes, { about, page }),
    entry(`testing/${name}`, `src/testing/${name}/index.ts`, fake.externals ?? [], fake.kilobytes),
  ]
}

/** The repository's root. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Those whose source is there. Equal to `entries` in a finished tree; a test says so. */
export const present = entries.filter((item) => existsSync(`${root}${item.source}`))

/** Names of the adapters: those that have a fake. */
export function adapterNames(of: readonly Entry[] = entries): readonly string[] {
  return of.flatMap(({ name }) => /^testing\/(.+)$/.exec(name)?.[1] ?? [])
}

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
