// Replies of `configuration/...`. v2 wraps them in {"_version", "data"}; v3 answers the bare value, and the
// version comes in the header Configuration-Version.
import * as z from 'zod/mini'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { count, decode, oneOrMany } from './decode.js'
import type { Tree } from './paths.js'

/** A configuration value with the version it was read at. */
export interface Versioned<T> {
  readonly version: number | undefined
  readonly data: T
}

/** A server line as the API prints it: written back whole, so every key is kept. */
export type ConfigServer = Readonly<Record<string, unknown>> & { readonly name: string }

const configServerSchema = z.looseObject({ name: nonEmpty() })

/** The reply of `configuration/...servers/S`. */
export function parseConfigServer(
  tree: Tree,
  text: string,
  header: string | undefined,
): Versioned<ConfigServer> {
  return versioned(tree, configServerSchema, text, header, 'configuration server')
}

/** The reply of `configuration/...servers`. An empty backend is `null` in 3.4.2: Go's list of nothing. */
export function parseConfigServers(
  tree: Tree,
  text: string,
  header: string | undefined,
): Versioned<readonly ConfigServer[]> {
  const schema = orNull(tree, z.array(configServerSchema))
  const { version, data } = versioned(tree, schema, text, header, 'configuration servers')
  return { version, data: data ?? [] }
}

/** The reply of `configuration/version`. */
export function parseConfigVersion(text: string): number {
  return decode(z.int(), text, 'configuration version')
}

const sectionSchema = z.looseObject({
  name: z.exactOptional(z.string()),
  from: z.exactOptional(z.nullable(z.string())),
  default_server: z.exactOptional(z.nullable(z.looseObject({}))),
})

/** What a backend, or a defaults section, sets for servers. */
export interface Section {
  readonly name: string | undefined
  /** The defaults section that applies to it. */
  readonly from: string | undefined
  readonly defaultServer: Readonly<Record<string, unknown>>
}

/** A reply about a backend or about defaults sections. */
export function parseSections(tree: Tree, text: string): readonly Section[] {
  const schema = orNull(tree, oneOrMany(sectionSchema))
  const { data } = versioned(tree, schema, text, undefined, 'configuration section')
  return (data ?? []).map(({ name, from, default_server: settings }) => ({
    name,
    from: from ?? undefined,
    defaultServer: settings ?? {},
  }))
}

const globalSchema = z.looseObject({ hard_stop_after: z.exactOptional(z.nullable(count)) })

/** `hard-stop-after` in the reply of `configuration/global`, in milliseconds; undefined where it is not set. */
export function parseHardStopAfter(tree: Tree, text: string): number | undefined {
  const { data } = versioned(tree, globalSchema, text, undefined, 'configuration global')
  return data.hard_stop_after ?? undefined
}

/** An empty list is null in v3 alone: a wrapped one without its data is damaged. */
function orNull<T>(tree: Tree, schema: z.ZodMiniType<T>): z.ZodMiniType<T | null> {
  return tree === 'v3' ? z.nullable(schema) : schema
}

function versioned<T>(
  tree: Tree,
  schema: z.ZodMiniType<T>,
  text: string,
  header: string | undefined,
  what: string,
): Versioned<T> {
  if (tree === 'v2') {
    const wrapped = decode(
      z.looseObject({ _version: z.exactOptional(z.int()), data: schema }),
      text,
      what,
    )
    return { version: wrapped._version, data: wrapped.data }
  }
  const version = Number.parseInt(header ?? '', 10)
  return { version: Number.isNaN(version) ? undefined : version, data: decode(schema, text, what) }
}
