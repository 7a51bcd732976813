import { ACTIONS, type Action, cellName, type Traffic, TRAFFIC } from './cells.ts'

/** A backend and a way in for every cell of the table. */
export function cellsConfig(port: (name: string) => number): string {
  return TRAFFIC.flatMap((traffic) => ACTIONS.map((action) => cell(traffic, action, port))).join(
    '\n',
  )
}

function cell(traffic: Traffic, action: Action, port: (name: string) => number): string {
  const name = cellName(traffic, action)
  const mode = traffic === 'tcp' ? 'tcp' : 'http'
  const target = traffic === 'tcp' ? 'echo' : traffic === 'dead' ? 'nobody' : 's1'
  const options = [
    ...(action === 'cutting' ? ['on-marked-down shutdown-sessions'] : []),
    ...(traffic === 'queued' || traffic === 'redispatched' ? ['maxconn 1'] : []),
    ...(traffic === 'dead' ? ['check inter 100 fall 1'] : []),
  ]
  const second = traffic === 'tcp' ? 'echo' : 's2'
  return `
frontend f_${name}
  mode ${mode}
  bind 127.0.0.1:${port(name)}
  default_backend ${name}
backend ${name}
  mode ${mode}
  ${traffic === 'redispatched' ? 'option redispatch' : 'no option redispatch'}
${mode === 'http' ? '  cookie SRV insert' : ''}
  server s1 127.0.0.1:${port(target)} ${mode === 'http' ? 'cookie s1 ' : ''}${options.join(' ')}
  server s2 127.0.0.1:${port(second)}${mode === 'http' ? ' cookie s2' : ' backup'}`
}

/** One backend, for what a reload does. */
export function reloadConfig(port: (name: string) => number): string {
  return `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
  server s1 127.0.0.1:${port('s1')} cookie s1
  server s2 127.0.0.1:${port('s2')} cookie s2`
}
