import { VERSIONS, showInfo } from './show-info.js'
import { find, say } from '../cli/reply.js'
import type { Context, Reply } from '../cli/reply.js'
import { showServersConn, showServersState } from './show-servers.js'
import { showSess, showSessAll } from './show-sess.js'
import { showStat } from './show-stat.js'

export function stat({ worker, state: own, args }: Context): Reply {
  const text = showStat(worker, args, worker.config.level)
  return text === 'No such proxy.\n' ? say(own, 3, text) : { text }
}

export function state({ worker, state: own, args }: Context): Reply {
  const text = showServersState(worker, args[0])
  return text.startsWith('1') ? { text } : say(own, 3, text)
}

export function conn({ worker, state: own, args }: Context): Reply {
  const text = showServersConn(worker, args[0])
  return text.startsWith('#') ? { text } : say(own, 3, text)
}

export function info({ worker, args }: Context): Reply {
  return { text: showInfo(worker, args.includes('float')) }
}

export function version({ worker, state: own }: Context): Reply {
  return say(own, 6, `${VERSIONS[worker.config.version].text}\n`)
}

export function backends({ worker }: Context): Reply {
  return { text: `# name\n${worker.backends.map(({ name }) => `${name}\n`).join('')}` }
}

export function cliLevel({ state: own }: Context): Reply {
  return { text: `${own.level}\n` }
}

export function sess({ worker, state: own, args }: Context): Reply {
  if (args[0] === 'all') return { text: showSessAll(worker) }
  const text = showSess(worker, args)
  return text.startsWith('No such') ? say(own, 3, text) : { text }
}

export function env({ worker, state: own, args }: Context): Reply {
  const variables: Record<string, string> = {}
  const { master, version } = worker.config
  // Without a master's socket it runs under one all the same, as most do: from 3.0 on HAProxy tells by
  // that whether it was ever reloaded. 2.6 does not, so there it is a process of its own.
  if (master || version !== '2.6') variables['HAPROXY_MWORKER'] = '1'
  if (master && version !== '3.2') variables['HAPROXY_MASTER_CLI'] = worker.masterAddress
  if (worker.generation > 0) {
    if (version === '3.0') variables['HAPROXY_LOAD_SUCCESS'] = '1'
    if (version === '3.2') variables['HAPROXY_MWORKER_REEXEC'] = '1'
  }
  const [name] = args
  const found = Object.entries(variables).filter(([key]) => name === undefined || key === name)
  if (name !== undefined && found.length === 0) return say(own, 3, 'Variable not found\n')
  return { text: found.map(([key, value]) => `${key}=${value}\n`).join('') }
}

export function getWeight(context: Context): Reply {
  const found = find(context)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  const { weight, config } = found.server
  return { text: `${weight} (initial ${config.weight})\n` }
}
