import type { Dispatcher } from 'undici'
import * as z from 'zod/mini'
import { askOption } from '../provider/abort.js'
import type { Clock } from '../provider/clock.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import type { Secret } from '../provider/option-schemas.js'
import { homePath } from '../provider/options.js'
import { tlsSchema } from './tls.js'

/** An undici dispatcher in place of our own Agent. */
const dispatcherOption = z.custom<Dispatcher>(
  (value: unknown) =>
    typeof value === 'object' &&
    value !== null &&
    'dispatch' in value &&
    typeof value.dispatch === 'function',
  'expected a dispatcher of undici, such as an Agent',
)

/** The `password` option of every adapter that logs in. The value never reaches a message. */
export const secretSchema = z.custom<Secret>(
  (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
  {
    error: ({ input }) =>
      input === ''
        ? 'is empty, expected a string or a function that returns one; is the variable that it comes from set?'
        : 'expected a string or a function that returns one',
  },
)

/** The options, besides `url`, of every adapter that logs in over HTTP: for its `z.strictObject`. */
export const loginOptions = {
  username: z.string('expected a user name').check(z.minLength(1, 'expected a user name')),
  password: secretSchema,
  tls: z.exactOptional(tlsSchema),
  dispatcher: z.exactOptional(dispatcherOption),
  /** Send credentials over plain HTTP to hosts other than loopback. */
  allowPlaintext: z.exactOptional(z.boolean()),
}

/** A schema for an http or https URL without user info. */
export function urlOption(example: string): z.ZodMiniType<string, string> {
  return z
    .string({ error: ({ input }) => `expected a URL such as ${example}${asText(input)}` })
    .check(z.superRefine((value, context) => tell(context, () => parseHttpUrl(value, 'url'))))
}

/** A schema for one URL, or one for each unit of a pair or a group. */
export function urlsOption(
  example: string,
): z.ZodMiniType<string | string[], string | readonly string[]> {
  const url = urlOption(example)
  return z.union(
    [
      url,
      z.array(url).check(
        z.minLength(1, 'expected at least one URL'),
        // Not maxLength: a list that is too long aborts its branch (zod 4.6.7), and the union drops its words.
        z.refine((urls) => urls.length <= 8, 'expected at most eight URLs'),
        // Each would be read and changed as a unit of its own.
        z.refine(
          (urls) => new Set(urls.map(placeOf)).size === urls.length,
          'expected each URL once',
        ),
      ),
    ],
    {
      error: (issue) =>
        Array.isArray(issue.input) || typeof issue.input === 'string'
          ? undefined
          : `expected a URL such as ${example}, or a list of those of its units${asText(issue.input)}`,
    },
  )
}

/** The URL of Node is an object: what it is asked for looks like what it was given. */
function asText(input: unknown): string {
  return input instanceof URL ? '; found a URL object: give its href' : ''
}

/**
 * Names a balancer by its URLs: the same for any order of its units, and with the paths, because behind one gateway
 * each path is a separate balancer.
 */
export function instanceOf(urls: readonly string[]): string {
  return urls.map(placeOf).sort().join(',')
}

/** What a URL leads to: the same for any spelling of it. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return url
  const { origin, pathname } = new URL(url)
  return origin + withoutSlash(pathname)
}

const withoutSlash = (path: string): string => path.replace(/\/$/, '')

/** Refuses a URL that would send credentials in the clear: for the `superRefine` of a whole schema. */
export function refusePlaintext(
  options: {
    readonly url: string | readonly string[]
    readonly allowPlaintext?: boolean | undefined
    readonly socketPath?: string | undefined
  },
  context: z.core.$RefinementCtx,
): void {
  if (options.socketPath !== undefined) return
  const { url } = options
  for (const [i, each] of [url].flat().entries()) {
    // A value that is not an http URL is reported already.
    if (!URL.canParse(each) || !/^https?:/i.test(each)) continue
    const path = typeof url === 'string' ? ['url'] : ['url', i]
    tell(context, () => assertPrivate(new URL(each), options.allowPlaintext), path)
  }
}

/** Turns an error of a check into an issue of its field. */
function tell(
  context: z.core.$RefinementCtx,
  check: () => unknown,
  path: PropertyKey[] = [],
): void {
  try {
    check()
  } catch (error) {
    if (!isDrainableError(error)) throw error
    context.addIssue({ code: 'custom', path, message: error.message.replace(/^url: /, '') })
  }
}

/** The path of a file or a socket. */
export function pathOption(): z.ZodMiniString {
  return z.string().check(
    z.minLength(1),
    z.superRefine((path, context) => {
      const message = homePath(path)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    }),
  )
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i

/**
 * Parses an http or https URL without user info.
 *
 * @throws `INVALID_OPTIONS` naming the field; the URL is printed without user info
 */
export function parseHttpUrl(value: string, field: string): URL {
  let url: URL
  try {
    url = new URL(value)
  } catch {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field}: expected an http or https URL such as 'https://10.0.0.2:8443'`,
    )
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    // `host.example:443` is a URL too: one of the scheme host.example.
    const remedy = /^[a-z0-9.-]+:\d+(\/.*)?$/i.test(value) ? `: write 'https://${value}'` : ''
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field}: expected http or https, found '${url.protocol.slice(0, -1)}'${remedy}`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field}: credentials do not belong in the URL, give username and password`,
    )
  }
  if (url.search !== '' || url.hash !== '') {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field}: expected no query and no fragment, found '${url.search === '' ? '#' : '?'}': give the address of the product alone`,
    )
  }
  return url
}

/**
 * Refuses to send credentials over plain HTTP to anything but loopback.
 *
 * @throws `INVALID_OPTIONS` unless `allowPlaintext` is set
 */
export function assertPrivate(url: URL, allowPlaintext: boolean | undefined, field = 'url'): void {
  if (url.protocol === 'https:' || allowPlaintext === true || LOOPBACK.test(url.hostname)) return
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${field}: credentials would cross the network in the clear to ${url.origin}, use https or set allowPlaintext: true`,
  )
}

/**
 * Reads the secret's present value.
 *
 * @param field - the name of the option
 * @param clock - measures the 20 s that a function has. Default: the real clock
 * @throws what the function threw; `CALL_TIMEOUT` if it does not answer; `INVALID_OPTIONS` if it returns no text
 */
export async function readSecret(secret: Secret, field: string, clock?: Clock): Promise<string> {
  const value: unknown =
    typeof secret === 'function'
      ? await askOption(field, secret, clock === undefined ? {} : { clock })
      : secret
  if (typeof value === 'string' && value !== '') return value
  const what = value === '' ? 'an empty string' : 'no string'
  throw new DrainableError('INVALID_OPTIONS', `${field}: the function returned ${what}`)
}

/** Replaces every occurrence of the secrets in a text: for the words of a product that repeats what it was sent. */
export function redact(text: string, secrets: readonly string[]): string {
  let safe = text
  for (const secret of secrets) {
    if (secret.length === 0) continue
    for (const form of new Set([
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64'),
    ])) {
      safe = safe.replaceAll(form, '***')
    }
  }
  return safe
}
