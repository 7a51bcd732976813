/** The JSON schemas in the package: of a configuration file of the command, and of what it prints. */
import { writeFileSync } from 'node:fs'
import * as z from 'zod/mini'
import { configSchema } from '../../src/cli/config.ts'
import { lineSchema, resultSchema } from '../../src/cli/schema/result.ts'
import { root } from './entries.ts'

/** The schemas by the name under which the package exports them. */
export function schemas(): Readonly<Record<string, object>> {
  return {
    'config.schema.json': z.toJSONSchema(configSchema),
    'command.schema.json': z.toJSONSchema(resultSchema, { reused: 'ref' }),
    'command-line.schema.json': z.toJSONSchema(lineSchema, { reused: 'ref' }),
  }
}

/** Writes them into `dist`. */
export function writeSchemas(): void {
  for (const [name, schema] of Object.entries(schemas()))
    writeFileSync(`${root}dist/${name}`, `${JSON.stringify(schema, null, 2)}\n`)
}
