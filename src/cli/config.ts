import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import * as z from 'zod/mini'
import { DrainableError } from '../provider/error.js'
import { matching, nonEmpty } from '../provider/option-schemas.js'
import { parseOptions } from '../provider/options.js'
import { quote } from '../provider/quote.js'
import { without } from './without.js'

const path = nonEmpty()

const tls = z.strictObject({
  ca: z.exactOptional(path.check(z.describe('PEM file of the authorities'))),
  cert: z.exactOptional(path.check(z.describe('PEM file of the client certificate'))),
  key: z.exactOptional(path.check(z.describe('PEM file of its key'))),
  fingerprint256: z.exactOptional(
    z.string().check(z.describe("SHA-256 fingerprint of the server's certificate")),
  ),
  servername: z.exactOptional(
    z.string().check(z.describe('name that the certificate must be valid for')),
  ),
  insecure: z.exactOptional(z.literal(true).check(z.describe('accepts any certificate'))),
})

const balancer = z.strictObject({
  url: nonEmpty().check(z.describe('as on the command line, such as bigip+https://bigip1.example')),
  username: z.exactOptional(nonEmpty().check(z.describe('user of the API'))),
  passwordFile: z.exactOptional(path.check(z.describe('file whose first line is the password'))),
  passwordEnv: z.exactOptional(
    z
      .string()
      .check(
        z.regex(/^[A-Za-z_]\w*$/, 'expected the name of a variable, never the password itself'),
        z.describe('environment variable that holds the password'),
      ),
  ),
  tls: z.exactOptional(tls.check(z.describe('how the certificate is verified'))),
  options: z.exactOptional(
    z
      .record(z.string(), z.unknown())
      .check(z.describe('further options of the adapter, as its page has them')),
  ),
})

const NAME = /^(?!all$)[\w.-]+$/

/** @param balancers - the balancers by their names */
function configOf<T extends z.ZodMiniType>(balancers: T) {
  return z.strictObject({
    $schema: z.exactOptional(z.string()),
    balancers,
    tickets: z.exactOptional(path.check(z.describe('folder of the tickets'))),
    onMissing: z.exactOptional(
      z
        .enum(['skip', 'fail'])
        .check(z.describe('what a balancer without the member means for a drain over several')),
    ),
  })
}

/** The schema of a configuration file; `drainable/config.schema.json` is made from it. */
export const configSchema = configOf(
  z
    .record(matching(NAME, 'expected letters, digits and . _ -'), z.union([nonEmpty(), balancer]))
    .check(z.describe('by the names that the command line uses')),
).check(z.describe('balancers and tickets for the drainable command'))

/** The same where each balancer is an object: what is wrong with one is said by its field. */
const spelled = configOf(
  z.record(z.string(), balancer).check(
    z.refine((all) => Object.keys(all).length > 0, 'expected at least one balancer'),
    z.refine((all) => wrongName(all) === undefined, {
      error: ({ input }) =>
        `'${quote(wrongName(Object(input) as object) ?? '')}' is no name: expected letters, digits and . _ -, and not 'all', which stands for all of them`,
    }),
  ),
)

function wrongName(all: object): string | undefined {
  return Object.keys(all).find((name) => !NAME.test(name))
}

/** One balancer of the configuration. */
export type BalancerConfig = z.output<typeof balancer>

/** The configuration, with every path absolute. */
export interface Config {
  readonly balancers: Readonly<Record<string, BalancerConfig>>
  readonly tickets?: string
  readonly onMissing?: 'skip' | 'fail'
}

/**
 * Reads a configuration file. Its paths are relative to its folder.
 *
 * @throws `INVALID_OPTIONS` naming the file and every wrong field
 */
export function readConfig(file: string): Config {
  const subject = `--config ${quote(file)}`
  const folder = dirname(resolve(file))
  const given = parseOptions(spelled, spell(parse(file, subject)), subject)
  const { balancers, ...rest } = without(given, ['$schema'])
  const toPath = (name: string | undefined): string | undefined =>
    name === undefined ? undefined : resolve(folder, name)
  const tickets = toPath(rest.tickets)
  return {
    ...rest,
    ...(tickets === undefined ? {} : { tickets }),
    balancers: Object.fromEntries(
      Object.entries(balancers).map(([name, given]) => [name, absolute(given, toPath)]),
    ),
  }
}

function parse(file: string, subject: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new DrainableError('INVALID_OPTIONS', `${subject}: it can not be read (${why})`, {
      cause: error,
    })
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    // The words of the parser quote the text, and a password could stand there.
    throw new DrainableError('INVALID_OPTIONS', `${subject}: it is not JSON`, {
      cause: new Error(/position \d+/.exec(String(error))?.[0] ?? 'not JSON'),
    })
  }
}

/** A balancer that is given by its URL alone, as an object. */
function spell(given: unknown): unknown {
  const { balancers } = Object(given) as { readonly balancers?: unknown }
  if (typeof balancers !== 'object' || balancers === null || Array.isArray(balancers)) return given
  const all = Object.entries(balancers).map(([name, one]: [string, unknown]) => [
    name,
    typeof one === 'string' ? { url: one } : one,
  ])
  return { ...(given as object), balancers: Object.fromEntries(all) as object }
}

function absolute(
  given: BalancerConfig,
  toPath: (name: string | undefined) => string | undefined,
): BalancerConfig {
  const { passwordFile, tls: verified, ...rest } = given
  const file = toPath(passwordFile)
  return {
    ...rest,
    ...(file === undefined ? {} : { passwordFile: file }),
    ...(verified === undefined ? {} : { tls: absoluteTls(verified, toPath) }),
  }
}

function absoluteTls(
  given: z.output<typeof tls>,
  toPath: (name: string | undefined) => string | undefined,
): z.output<typeof tls> {
  const files = (['ca', 'cert', 'key'] as const).flatMap((key) => {
    const file = toPath(given[key])
    return file === undefined ? [] : [[key, file] as const]
  })
  return { ...given, ...Object.fromEntries(files) }
}
