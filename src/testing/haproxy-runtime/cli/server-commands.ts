import type { AdminState } from '../../../provider/contract.js'
import { find, say, sayBare, silent } from './reply.js'
import type { Context, Reply } from './reply.js'
import type { Server } from '../process/server.js'

const USAGE =
  'usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | agent-send | ' +
  'check-addr | check-port | fqdn | health | ssl | state | weight\n'

export function setServer(context: Context): Reply {
  const { worker, state: own, args } = context
  const found = find(context, true)
  if ('refusal' in found) return say(own, 3, found.refusal)
  const { server } = found
  switch (args[1]) {
    case 'state': {
      const [, , to] = args
      if (to !== 'ready' && to !== 'drain' && to !== 'maint') {
        return say(own, 3, "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n")
      }
      worker.setState(server, to)
      return silent()
    }
    case 'weight':
      return weigh(context, server, args[2])
    case 'health':
      if (!server.config.check) {
        return say(own, 3, 'health checks are not enabled on this server.\n')
      }
      server.health =
        args[2] === 'down' ? 0 : server.config.check.rise + server.config.check.fall - 1
      return silent()
    case 'addr':
      return readdress(context, server)
    default:
      return say(own, 3, USAGE)
  }
}

export function setWeight(context: Context): Reply {
  const found = find(context, true)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  return weigh(context, found.server, context.args[1])
}

function weigh(context: Context, server: Server, text: string | undefined): Reply {
  if (text === undefined) return say(context.state, 3, 'Require <weight> or <weight%>.\n')
  const [, digits, rest] = /^(\d+)(.*)$/.exec(text) ?? []
  if (digits === undefined) {
    return sayBare(context, 3, 'Empty weight string empty or preceded by garbage\n')
  }
  if (rest !== '' && rest !== '%') return sayBare(context, 3, 'Trailing garbage in weight string\n')
  const value = Number(digits)
  if (rest === '%') {
    if (value > 25_600) return say(context.state, 3, 'Relative weight must be positive.\n')
    server.weight = Math.min(256, Math.floor((server.config.weight * value) / 100))
  } else if (value > 256) {
    const refusal = 'Absolute weight can only be between 0 and 256 inclusive.\n'
    return say(context.state, 3, refusal)
  } else server.weight = value
  context.worker.backend(server.backend)?.stateChanged(server, false)
  return silent()
}

function readdress(context: Context, server: Server): Reply {
  const [, , address = server.address, , portText] = context.args
  const port = portText === undefined ? server.port : Number(portText) % 65_536
  const { state: own, worker } = context
  const by = "by 'stats socket command'\n"
  if (address === server.address && port === server.port) {
    if (worker.config.version !== '2.6') return say(own, 4, 'nothing changed\n')
    const tail = portText === undefined ? '' : ', no need to change the port'
    return say(own, 4, `no need to change the addr${tail} ${by}`)
  }
  const changes: string[] = []
  if (address !== server.address)
    changes.push(`IP changed from '${server.address}' to '${address}'`)
  if (port !== server.port) changes.push(`port changed from '${server.port}' to '${port}'`)
  server.address = address
  server.port = port
  return say(own, 4, `${changes.join(', ')} ${by}`)
}

export function maxconn(context: Context): Reply {
  const found = find(context, true)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  const [, text] = context.args
  if (text === undefined) return say(context.state, 3, 'Require <maxconn>.\n')
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) {
    return sayBare(context, 3, 'maxconn string empty or preceded by garbage\n')
  }
  found.server.maxconn = value === 0 ? undefined : value
  found.backend.serveQueues(found.server)
  return silent()
}

export function toggle(to: AdminState) {
  return (context: Context): Reply => {
    const found = find(context, true)
    if ('refusal' in found) return say(context.state, 3, found.refusal)
    context.worker.setState(found.server, to)
    return silent()
  }
}

export function health(on: boolean) {
  return (context: Context): Reply => {
    const found = find(context, true)
    if ('refusal' in found) return say(context.state, 3, found.refusal)
    if (!found.server.config.check) {
      const verb = on ? 'enable' : 'disable'
      const text = `Health check was not configured on this server, cannot ${verb}.\n`
      return say(context.state, 3, text)
    }
    if (on && !found.server.checking) found.server.health = found.server.config.check.rise
    found.server.checking = on
    return silent()
  }
}

export function cut(context: Context): Reply {
  const found = find(context, true)
  if ('refusal' in found) return say(context.state, 3, found.refusal)
  found.server.cutSessions()
  found.backend.serveQueues(found.server)
  return silent()
}

export function cutOne({ worker, state: own, args }: Context): Reply {
  for (const backend of worker.backends) {
    for (const server of backend.servers) {
      for (const session of server.sessions) {
        if (worker.sessionId(session) !== args[0]) continue
        backend.end(server, session)
        session.cut()
        worker.release()
        return silent()
      }
    }
  }
  return say(own, 3, "No such session (use 'show sess').\n")
}
