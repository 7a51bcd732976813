import type { Dispatcher } from 'undici'
import * as z from 'zod'
import { isDrainableError } from '../provider/error.js'
import { homePath } from '../provider/options.js'
import { assertPrivate, parseHttpUrl } from './http.js'
import { secretSchema } from './secret.js'
import { tlsSchema } from './tls.js'

/** An undici dispatcher in place of our own Agent. */
const dispatcherOption = z.custom<Dispatcher>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    'dispatch' in value &&
    typeof value.dispatch === 'function',
  'expected a dispatcher of undici, such as an Agent',
)

/** The options, besides `url`, of every adapter that logs in over HTTP: for its `z.strictObject`. */
export const loginOptions = {
  username: z.string('expected a user name').min(1, 'expected a user name'),
  password: secretSchema,
  tls: tlsSchema.exactOptional(),
  dispatcher: dispatcherOption.exactOptional(),
  /** Send credentials over plain HTTP to hosts other than loopback. */
  allowPlaintext: z.boolean().exactOptional(),
}

/** A schema for an http or https URL without user info. */
export function urlOption(example: string): z.ZodType<string, string> {
  return z
    .string({ error: ({ input }) => `expected a URL such as ${example}${asText(input)}` })
    .superRefine((value, context) => tell(context, () => parseHttpUrl(value, 'url')))
}

/** A schema for one URL, or one for each unit of a pair or a group. */
export function urlsOption(
  example: string,
): z.ZodType<string | string[], string | readonly string[]> {
  const url = urlOption(example)
  return z.union(
    [url, z.array(url).min(1, 'expected at least one URL').max(8, 'expected at most eight URLs')],
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
  const names = urls
    .map((url) => new URL(url))
    .map((url) => url.origin + withoutSlash(url.pathname))
  return names.sort().join(',')
}

const withoutSlash = (path: string): string => path.replace(/\/$/, '')

/** Refuses a URL that would send credentials in the clear: for the `superRefine` of a whole schema. */
export function refusePlaintext(
  options: {
    readonly url: string | readonly string[]
    readonly allowPlaintext?: boolean | undefined
    readonly socketPath?: string | undefined
  },
  context: z.RefinementCtx,
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
function tell(context: z.RefinementCtx, check: () => unknown, path: PropertyKey[] = []): void {
  try {
    check()
  } catch (error) {
    if (!isDrainableError(error)) throw error
    context.addIssue({ code: 'custom', path, message: error.message.replace(/^url: /, '') })
  }
}

/** The path of a file or a socket. */
export function pathOption(): z.ZodString {
  return z
    .string()
    .min(1)
    .superRefine((path, context) => {
      const message = homePath(path)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
}
