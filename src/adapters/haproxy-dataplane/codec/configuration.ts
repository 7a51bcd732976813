// What is written in HAProxy's configuration: a server's line, under a version. v2 wraps a value in {"_version",
// "data"}; v3 answers the bare value, and the version comes in the header Configuration-Version.
import * as z from 'zod/mini'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { decode } from './decode.js'
import type { Tree } from './paths.js'
import type { Marks } from './raw.js'

/** A configuration value with the version it was read at. */
export interface Versioned<T> {
  readonly version: number | undefined
  readonly data: T
}

/** A server line as the API prints it: written back whole, so every key is kept. */
export type ConfigServer = Readonly<Record<string, unknown>> & { readonly name: string }

const serverSchema = z.looseObject({ name: nonEmpty() })
const wrappedSchema = z.looseObject({ _version: z.exactOptional(z.int()), data: serverSchema })

/** The reply of `configuration/...servers/S`. */
export function parseConfigServer(
  tree: Tree,
  text: string,
  header: string | undefined,
): Versioned<ConfigServer> {
  const what = 'configuration server'
  if (tree === 'v2') {
    const { _version: version, data } = decode(wrappedSchema, text, what)
    return { version, data }
  }
  const version = Number.parseInt(header ?? '', 10)
  const data = decode(serverSchema, text, what)
  return { version: Number.isNaN(version) ? undefined : version, data }
}

/** The reply of `configuration/version`. */
export function parseConfigVersion(text: string): number {
  return decode(z.int(), text, 'configuration version')
}

/** What of a line is ours to change; of whatever has that, such as a ticket, too. */
export function marksOf({ weight, maintenance }: Readonly<Record<string, unknown>>): Marks {
  return {
    weight: typeof weight === 'number' ? weight : null,
    maintenance: typeof maintenance === 'string' ? maintenance : null,
  }
}
