import type { Worker } from '../process/worker.js'

const TAIL =
  'ts=00 epoch=0 age=0s calls=1 rate=0 cpu=0 lat=0 rq[f=848000h,i=0,an=00h,ax=] ' +
  'rp[f=80048000h,i=0,an=00h,ax=] scf=[8,0h,fd=16,rex=60s,wex=] scb=[8,1h,fd=17,rex=60s,wex=] ' +
  'exp=60s rc=0 c_exp='

/** `show sess`: one line a stream; `server b/s` filters on 3.2 only, the others list everything. */
export function showSess(worker: Worker, args: readonly string[]): string {
  const only = args[0] === 'server' && worker.config.version === '3.2' ? args[1] : undefined
  const lines: string[] = []
  for (const backend of worker.backends) {
    for (const server of backend.servers) {
      if (only !== undefined && only !== `${backend.name}/${server.name}`) continue
      for (const session of server.sessions) {
        const id = worker.sessionId(session)
        const front = worker.config.frontends.find(({ pool }) => pool === backend.name)
        const fe = front?.name ?? backend.name
        lines.push(
          `${id}: proto=tcpv4 src=127.0.0.1:1 fe=${fe} be=${backend.name} srv=${server.name} ${TAIL}\n`,
        )
      }
    }
  }
  // The command line's own stream is listed too.
  const own = `0x7f0000000000: proto=unix_stream src=unix:1 fe=GLOBAL be=<NONE> srv=<none> ${TAIL}\n`
  return lines.join('') + (only === undefined ? own : '')
}
