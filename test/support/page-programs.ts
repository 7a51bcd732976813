/** The programs that stand on the pages of the docs, to be run as they stand there. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { blocksOf, pages } from '../docs/pages.js'
import { withPlaces } from './places.js'

type Exports = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>

const blocks = new Map<string, string>(
  pages.flatMap((page) =>
    blocksOf(page)
      .filter(({ language }) => language === 'ts')
      .map(({ text }, n) => [`${page.path} ${n + 1}`, text] as const),
  ),
)

/** The programs of the pages that a test file runs. */
export class PagePrograms {
  /** What they printed. */
  readonly said: string[] = []
  readonly #run = new Set<string>()
  #folder = ''

  /**
   * At its end it expects that each program of these pages was run.
   *
   * @param elsewhere - programs that another test runs, or that can't be run alone, with the reason
   */
  constructor(isOurs: (path: string) => boolean, elsewhere: Readonly<Record<string, string>> = {}) {
    beforeAll(async () => {
      this.#folder = await mkdtemp(join(tmpdir(), 'drainable-pages-'))
      const keep = (...words: unknown[]): void => void this.said.push(words.join(' '))
      vi.spyOn(console, 'log').mockImplementation(keep)
      vi.spyOn(console, 'error').mockImplementation(keep)
      return () => rm(this.#folder, { recursive: true, force: true })
    })
    afterAll(() => {
      vi.restoreAllMocks()
      const ours = [...blocks.keys()].filter((name) => isOurs(name.split(' ')[0] ?? ''))
      const left = ours.filter((name) => !this.#run.has(name) && !(name in elsewhere))
      expect(left).toEqual([])
    })
  }

  /** A folder that is gone after the tests. */
  get folder(): string {
    return this.#folder
  }

  /**
   * Runs the n-th program of a page.
   *
   * @param name - `docs/adapters/envoy.md 1`
   * @param places - this machine's places for those that it names
   * @param given - what it declares and its reader has
   */
  async run(
    name: string,
    places: Readonly<Record<string, string>>,
    given: Readonly<Record<string, unknown>> = {},
  ): Promise<Exports> {
    this.#run.add(name)
    const block = blocks.get(name)
    if (block === undefined) throw new Error(`there is no ${name}`)
    const key = `given:${name}`
    Object.assign(globalThis, { [key]: given })
    const text = withPlaces(name, block, places).replaceAll(
      /^declare (?:const|function) (\w+).*$/gm,
      (_, one: string) =>
        one in given ? `const ${one} = (globalThis as any)[${JSON.stringify(key)}].${one}` : '',
    )
    const path = join(this.#folder, `${name.replaceAll(/\W+/g, '-')}.ts`)
    await writeFile(path, text)
    return (await import(/* @vite-ignore */ path)) as Exports
  }

  /** An EDS file with these endpoints. */
  async assignment(name: string, endpoints: readonly string[], cluster = 'web'): Promise<string> {
    const path = join(this.#folder, `${name}.json`)
    const type = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
    const resource = { '@type': type, ...endpointSet(cluster, endpoints) }
    await writeFile(path, JSON.stringify({ version_info: '1', resources: [resource] }))
    return path
  }
}

/** A ClusterLoadAssignment of these endpoints. */
export function endpointSet(cluster: string, endpoints: readonly string[]): object {
  const sockets = endpoints.map((endpoint) => {
    const [address, port] = endpoint.split(':')
    return { endpoint: { address: { socket_address: { address, port_value: Number(port) } } } }
  })
  return { cluster_name: cluster, endpoints: [{ lb_endpoints: sockets }] }
}

export const quoted = (value: unknown): string => JSON.stringify(value)
export const tlsOf = (ca: string): string => `{ ca: ${quoted(ca)} }`
