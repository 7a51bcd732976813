import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import type { CombineOptions } from '../fleet/combined/provider.js'
import type { Secret } from '../provider/option-schemas.js'
import type { DrainableProvider } from '../provider/contract.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import { nearest, quote, quotedList } from '../provider/quote.js'
import type { BalancerConfig, Config } from './config.js'
import { looksLikeUrl, parseBalancerUrl, type BalancerUrl } from './url.js'

/** What the command line and the environment say about how to log in. */
export interface Login {
  readonly username?: string | undefined
  readonly passwordFile?: string | undefined
  readonly tls?: Readonly<Record<string, unknown>> | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What one call opens with: the texts of pipes that were read, by their names. */
interface Opening extends Login {
  readonly pipes: Map<string, string>
}

/**
 * Opens the balancer that the command line names: a URL, a name from the configuration, several names with commas, or
 * `all` of them.
 *
 * @throws `INVALID_OPTIONS`
 */
export async function openBalancer(
  text: string,
  config: Config | undefined,
  given: Login,
): Promise<DrainableProvider> {
  const login = { ...given, pipes: new Map<string, string>() }
  if (looksLikeUrl(text)) {
    refuseFlags([{ url: text }], given)
    return open({ url: text }, undefined, login)
  }
  if (text.startsWith('/'))
    throw new DrainableError(
      'INVALID_OPTIONS',
      `the balancer: '${quote(text)}' is a path; write haproxy:${quote(text)} for the stats socket of a HAProxy`,
    )
  const names = namesIn(text, config)
  if (config === undefined) throw noConfig(text)
  const [only = text] = names
  refuseFlags(
    names.map((name) => entry(config, name)),
    given,
  )
  if (names.length < 2) return open(entry(config, only), only, login)
  const { combineProviders } = await import('../index.js')
  const opened: [string, DrainableProvider][] = []
  try {
    for (const name of names) opened.push([name, await open(entry(config, name), name, login)])
    const { onMissing } = config
    const options: CombineOptions = onMissing === undefined ? {} : { onMissing }
    return combineProviders(Object.fromEntries(opened), options)
  } catch (error) {
    for (const [, provider] of opened) await provider.close()
    throw error
  }
}

/** Products whose adapter logs in nowhere. */
const WITHOUT_LOGIN = ['haproxy', 'envoy', 'envoy-listener']

/** Of several balancers some may ask for a user: the flags are for those. The environment is for other commands, too. */
function refuseFlags(all: readonly BalancerConfig[], { username, passwordFile }: Login): void {
  const schemes = all.map(({ url }) => /^[a-z-]*/.exec(url)?.[0] ?? '')
  if (!schemes.every((scheme) => WITHOUT_LOGIN.includes(scheme))) return
  refuseLogin(schemes[0], { '--username': username, '--password-file': passwordFile })
}

/** A user or a password would be ignored, and whoever gave it believes that it protects something. */
function refuseLogin(scheme: string | undefined, given: Readonly<Record<string, unknown>>): void {
  const found = Object.keys(given).filter((name) => given[name] !== undefined)
  if (found.length === 0) return
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${found.join(', ')}: ${scheme} asks for no user and no password; leave ${found.length === 1 ? 'it' : 'them'} out`,
  )
}

function namesIn(text: string, config: Config | undefined): readonly string[] {
  if (text === 'all') return Object.keys(config?.balancers ?? {})
  return text.split(',').filter((name) => name !== '')
}

function noConfig(text: string): DrainableError {
  const found = `the balancer: '${quote(text, 80)}'`
  return new DrainableError(
    'INVALID_OPTIONS',
    text.includes('/')
      ? `${found} is no URL; the balancer stands first and the target after it, such as haproxy:/run/haproxy/admin.sock web/web1 (the path is absolute)`
      : `${found} is no URL, and names need --config; a URL looks like haproxy:/run/haproxy/admin.sock`,
  )
}

function entry({ balancers }: Config, name: string): BalancerConfig {
  const found = Object.hasOwn(balancers, name) ? balancers[name] : undefined
  if (found !== undefined) return found
  const names = Object.keys(balancers)
  const near = nearest(name, names)
  const meant = near === undefined ? '' : `; did you mean '${near}'?`
  throw new DrainableError(
    'INVALID_OPTIONS',
    `the balancer: the configuration has no '${quote(name, 80)}', it has ${quotedList(names)}${meant}`,
  )
}

async function open(
  config: BalancerConfig,
  name: string | undefined,
  login: Opening,
): Promise<DrainableProvider> {
  const url = parseBalancerUrl(config.url)
  const tls = { ...login.tls, ...(url.options['tls'] as object | undefined), ...config.tls }
  const options = {
    ...url.options,
    ...config.options,
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
  }
  try {
    if (WITHOUT_LOGIN.includes(url.scheme)) {
      const { username, passwordFile, passwordEnv } = config
      refuseLogin(url.scheme, { username, passwordFile, passwordEnv, 'USER@': url.username })
    }
    return await make(url, options, () => credentials(url, config, login))
  } catch (error) {
    if (name === undefined || !isDrainableError(error)) throw error
    throw new DrainableError(error.code, `balancer '${name}': ${error.message}`, { cause: error })
  }
}

/** A function, so that a password that rotates is read again. */
function credentials(
  url: BalancerUrl,
  config: BalancerConfig,
  { username, passwordFile, env, pipes }: Opening,
): { readonly username: string; readonly password: Secret } {
  const user = config.username ?? url.username ?? username ?? env['DRAINABLE_USERNAME']
  const variable = config.passwordEnv ?? 'DRAINABLE_PASSWORD'
  const file = config.passwordFile ?? passwordFile ?? env['DRAINABLE_PASSWORD_FILE']
  const inFile = file !== undefined && config.passwordEnv === undefined
  if (user === undefined || user === '')
    throw new DrainableError(
      'INVALID_OPTIONS',
      'username: this product asks for a user: give --username, DRAINABLE_USERNAME, or USER@ in the URL',
    )
  const read = (): string => (inFile ? firstLine(file, pipes) : (env[variable] ?? ''))
  if (read() === '')
    throw new DrainableError(
      'INVALID_OPTIONS',
      `password: there is none ${inFile ? `in the first line of ${quote(file)}` : `in ${variable}`}; set it there, or name a file with --password-file`,
    )
  return { username: user, password: read }
}

/** A pipe, such as `<(pass show lb)`, gives its text once: it is kept. A file is read again. */
function firstLine(file: string, pipes: Map<string, string>): string {
  const kept = pipes.get(file)
  if (kept !== undefined) return kept
  try {
    const opened = openSync(file, 'r')
    try {
      const line = readFileSync(opened, 'utf8').split(/\r?\n/, 1)[0] ?? ''
      if (!fstatSync(opened).isFile()) pipes.set(file, line)
      return line
    } finally {
      closeSync(opened)
    }
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `password: the file ${quote(file)} can not be read (${why})`,
      { cause: error },
    )
  }
}

type Factory = (options: never) => DrainableProvider

/** The factory checks what it is given, so nothing is checked here: an unknown option is its error. */
const call = (factory: Factory, options: object): DrainableProvider => factory(options as never)

/** Each adapter is loaded where it is asked for: a unix socket needs no HTTP client. */
async function make(
  { scheme, at }: BalancerUrl,
  given: Readonly<Record<string, unknown>>,
  login: () => { readonly username: string; readonly password: Secret },
): Promise<DrainableProvider> {
  switch (scheme) {
    case 'haproxy': {
      const { haproxyRuntime } = await import('../adapters/haproxy-runtime/index.js')
      return call(haproxyRuntime, { ...given, socket: at })
    }
    case 'dataplane': {
      const { haproxyDataplane } = await import('../adapters/haproxy-dataplane/index.js')
      return call(haproxyDataplane, { ...given, ...login(), url: at })
    }
    case 'bigip': {
      const { f5Bigip } = await import('../adapters/f5-bigip/index.js')
      return call(f5Bigip, { ...withPeers(at, given), ...login() })
    }
    case 'citrix': {
      const { citrixAdc } = await import('../adapters/citrix-adc/index.js')
      return call(citrixAdc, { ...withPeers(at, given), ...login() })
    }
    case 'envoy':
      return openEnvoy(at, given)
    case 'envoy-listener': {
      const { envoyListener } = await import('../adapters/envoy-listener/index.js')
      return call(envoyListener, { ...given, admin: at })
    }
    default:
      return scheme satisfies never
  }
}

/** The other devices of a pair or a group. */
function withPeers(at: string, given: Readonly<Record<string, unknown>>): object {
  const { peer, ...options } = given
  return { ...options, url: peer === undefined ? at : [at, peer].flat() }
}

async function openEnvoy(
  path: string,
  given: Readonly<Record<string, unknown>>,
): Promise<DrainableProvider> {
  const { envoy, fileEndpoints } = await import('../adapters/envoy/index.js')
  const { cluster, admin, ...options } = given
  return call(envoy, {
    ...options,
    endpoints: fileEndpoints({ cluster: clusterOf(cluster, path), path }),
    ...(admin === undefined ? {} : { admin: [admin].flat() }),
  })
}

function readEndpoints(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? String(cause)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `the balancer's URL: the file ${quote(path)} can not be read (${why})`,
      { cause },
    )
  }
}

/** A file of Envoy holds one set, which has its cluster's name. */
function clusterOf(given: unknown, path: string): string {
  if (typeof given === 'string') return given
  const text = readEndpoints(path)
  const names = [...text.matchAll(/["']?cluster(?:_n|N)ame["']?\s*:\s*["']?([^"'\s,}]+)/g)]
  const [, name] = names[0] ?? []
  if (name !== undefined && names.length === 1) return name
  throw new DrainableError(
    'INVALID_OPTIONS',
    `the balancer's URL: ${quote(path)} does not name one cluster; add ?cluster=NAME with the cluster_name of its set`,
  )
}
