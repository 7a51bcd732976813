import type { FakePoolOptions } from '../device/config.js'
import type { FakeOptions } from '../options.js'
import { configError, type Answer } from './replies.js'
import type { Unit } from '../device/unit.js'

/** What all units of the fake share. */
export interface Lab {
  readonly options: Required<
    Omit<FakeOptions, 'pools' | 'virtuals' | 'units' | 'pair' | 'tls' | 'port'>
  > & {
    readonly pools: Readonly<Record<string, FakePoolOptions>>
  }
  readonly virtuals: NonNullable<FakeOptions['virtuals']>
  readonly units: Unit[]
  /** Undefined for a device of its own. */
  readonly group: string | undefined
  readonly autoSync: boolean
  /** Full version, such as `15.1.10`. */
  readonly release: string
  /** Words that stand in for the computed sync status. */
  syncStatus: string | undefined
  /** The units do not hear each other: both are active for one traffic group. */
  split: boolean
}

/** One request, taken apart. */
export interface Call {
  readonly lab: Lab
  readonly unit: Unit
  readonly method: string
  /** Path as it stood on the wire, without the query. */
  readonly path: string
  /** Segments after `/mgmt`, percent-decoded; `wire` has them as they came. */
  readonly segments: readonly string[]
  readonly wire: readonly string[]
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
  readonly user: string
  /** Token of the request, or undefined under Basic. */
  readonly token: string | undefined
  /** Authorization header as it came. */
  readonly authorization: string | undefined
}

export type Route = (call: Call) => Answer | undefined

/** The link the device gives an object; always at `localhost`. */
export function link(call: Call, path: string, query = ''): string {
  return `https://localhost/mgmt/${path}?${query}ver=${call.lab.release}`
}

export function ok(json: unknown): Answer {
  return { status: 200, json }
}

/** A list with the query words the device knows: `$filter`, `$select`, `$top`, `$skip`. */
export function collection(
  call: Call,
  kind: string,
  path: string,
  all: readonly Readonly<Record<string, unknown>>[],
): Answer {
  const partition = /^partition eq (\S+)$/.exec(call.query.get('$filter') ?? '')?.[1]
  const found = all.filter((item) => partition === undefined || item['partition'] === partition)
  const top = numberOf(call, '$top')
  const skip = numberOf(call, '$skip') ?? 0
  const page = found.slice(skip, top === undefined ? undefined : skip + top)
  const more = top !== undefined && skip + top < found.length
  const paging =
    top === undefined
      ? {}
      : {
          currentItemCount: page.length,
          itemsPerPage: top,
          pageIndex: Math.floor(skip / top) + 1,
          startIndex: skip + 1,
          totalItems: found.length,
          totalPages: Math.ceil(found.length / top),
          ...(more ? { nextLink: link(call, path, `$top=${top}&$skip=${skip + top}&`) } : {}),
        }
  return ok({
    kind,
    selfLink: link(call, path),
    ...paging,
    ...(page.length === 0 ? {} : { items: page.map((item) => select(call, item)) }),
  })
}

/** Only the properties that `$select` names, where it is there. */
export function select(
  call: Call,
  item: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const wanted = call.query.get('$select')?.split(',')
  if (wanted === undefined) return item
  return Object.fromEntries(Object.entries(item).filter(([key]) => wanted.includes(key)))
}

function numberOf(call: Call, name: string): number | undefined {
  const text = call.query.get(name)
  if (text === null) return undefined
  if (/^\d+$/.test(text)) return Number(text)
  throw configError(400, `invalid value "${text}" for query option ${name}`)
}

/** One word of the body; undefined where it is not there. */
export function word(call: Call, name: string): string | undefined {
  const value = call.body[name]
  return typeof value === 'string' ? value : undefined
}
