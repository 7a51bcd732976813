import { readdirSync, readFileSync } from 'node:fs'

const FOLDER = new URL('../fixtures/dataplane/', import.meta.url)

/** One recorded exchange with a real Data Plane API. */
export interface Exchange {
  readonly note?: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body?: unknown
  }
  readonly response: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: unknown
  }
}

/** One file of them. */
export interface Recording {
  /** Such as `v3-3.2.13-04-drain-idle`. */
  readonly name: string
  readonly tree: 'v2' | 'v3'
  readonly version: string
  /** Such as `04`. */
  readonly topic: string
  readonly exchanges: readonly Exchange[]
}

/** Every recording, in order. */
export function recordings(): readonly Recording[] {
  return readdirSync(FOLDER)
    .filter((file) => /^v[23]-.*\.json$/.test(file))
    .sort()
    .map((file) => {
      const [, tree, version, topic] = /^(v[23])-([\d.]+)-(\d\d)-/.exec(file) ?? []
      const { exchanges } = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as {
        exchanges: (Exchange | { readonly event: string })[]
      }
      return {
        name: file.replace('.json', ''),
        tree: tree as 'v2' | 'v3',
        version: version!,
        topic: topic!,
        exchanges: exchanges.filter((exchange) => 'request' in exchange),
      }
    })
}
