import type { CheckConfig, ServerConfig } from '../options.js'
import { whyKept } from '../process/removable.js'
import { find, NEED_PATH, say, sayBare } from './reply.js'
import type { Context, Reply } from './reply.js'

export function addServer(context: Context): Reply {
  const { worker, state: own, args } = context
  const [path = '', at, ...keywords] = args
  if (path === 'help' && worker.config.version === '3.2') {
    const known = 'backup check disabled fall id inter maxconn rise track weight'
    return {
      text: `List of keywords supported for dynamic server:\n${known.replaceAll(' ', '\n')}\n`,
    }
  }
  const [, pool, name] = /^([^/]+)\/(.+)$/.exec(path) ?? []
  if (pool === undefined || name === undefined) return sayBare(context, 3, NEED_PATH)
  const backend = worker.backend(pool)
  if (!backend) return sayBare(context, 3, 'No such backend.\n')
  if (worker.isOld) return say(own, 3, 'Proxy is disabled.\n')
  if (backend.find(name)) {
    return say(own, 3, 'Already exists a server with the same name in backend.\n')
  }
  if (at === undefined) {
    return say(own, 3, "'server' expects <name> and <addr>[:<port>] as arguments.\n")
  }
  const config = readKeywords(name, at, keywords)
  if (typeof config === 'string') return say(own, 3, config)
  worker.add(backend, config)
  return say(own, 6, 'New server registered.\n')
}

// eslint-disable-next-line complexity -- the table of keywords
function readKeywords(
  name: string,
  at: string,
  keywords: readonly string[],
): ServerConfig | string {
  const [, address = at, portText] = /^(.*):(\d+)$/.exec(at) ?? []
  const port = Number(portText ?? 0)
  const values: Record<string, number> = {}
  let isChecked = false
  let backup = false
  let disabled = false
  let track: string | undefined
  const left = [...keywords]
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (['weight', 'maxconn', 'inter', 'rise', 'fall', 'id'].includes(word)) {
      const text = left.shift()
      const value = Number.parseInt(text ?? '', 10)
      if (Number.isNaN(value)) return `'${word}' : missing or invalid value.\n`
      values[word] =
        word === 'inter' && text?.endsWith('s') && !text.endsWith('ms') ? value * 1_000 : value
    } else if (word === 'check') isChecked = true
    else if (word === 'backup') backup = true
    else if (word === 'disabled') disabled = true
    else if (word === 'track') track = left.shift()
    else if (word === 'cookie') left.shift()
    else return `unknown keyword '${word}'.\n`
  }
  const { weight = 1, maxconn: limit, inter = 2_000, rise = 2, fall = 3 } = values
  const check: CheckConfig | undefined = isChecked
    ? { inter, rise, fall, connects: true }
    : undefined
  const to = { host: address, port }
  return {
    name,
    address,
    port,
    to,
    weight,
    maxconn: limit,
    backup,
    disabled,
    check,
    track,
    cutOnDown: false,
  }
}

export function delServer(context: Context): Reply {
  const { worker } = context
  const found = find(context, true)
  if ('refusal' in found) return sayBare(context, 3, found.refusal)
  const refusal = whyKept(worker, found.server)
  if (refusal !== undefined) return sayBare(context, 3, refusal)
  worker.remove(found.server)
  return sayBare(context, 6, 'Server deleted.\n')
}
