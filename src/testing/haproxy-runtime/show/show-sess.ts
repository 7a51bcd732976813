import type { Session } from '../process/server.js'
import type { Worker } from '../process/worker.js'

const TAIL =
  'calls=1 rate=0 cpu=0 lat=0 rq[f=848000h,i=0,an=00h,ax=] ' +
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
          `${id}: proto=tcpv4 src=127.0.0.1:1 fe=${fe} be=${backend.name} srv=${server.name} ts=00 epoch=0 age=${ageOf(session)} ${TAIL}\n`,
        )
      }
    }
  }
  // The command line's own stream is listed too.
  const own = `0x7f0000000000: proto=unix_stream src=unix:1 fe=GLOBAL be=<NONE> srv=<none> ts=00 epoch=0 age=0s ${TAIL}\n`
  return lines.join('') + (only === undefined ? own : '')
}

/** As HAProxy cuts it: the two largest units. */
function ageOf({ since = Date.now() }: Session): string {
  const seconds = Math.floor((Date.now() - since) / 1_000)
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ]
  const said = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count}${unit}`)
  return said.slice(0, 2).join('') || '0s'
}

/** `show sess all`: each stream over many lines, of which the fake has those that tell what it carries. */
export function showSessAll(worker: Worker): string {
  const texts: string[] = []
  for (const backend of worker.backends) {
    const front = worker.config.frontends.find(({ pool }) => pool === backend.name)
    const name = front?.name ?? backend.name
    const isTcp = front?.mode === 'tcp'
    const mode = isTcp ? 'tcp' : 'http'
    const mux = isTcp ? 'PASS' : 'H1'
    for (const server of backend.servers) {
      for (const session of server.sessions) {
        const id = worker.sessionId(session)
        const stage = session.tunnel
          ? 'status=101 req.st=MSG_TUNNEL rsp.st=MSG_TUNNEL'
          : 'status=-1 req.st=MSG_DONE rsp.st=MSG_RPBEFORE'
        texts.push(
          `${id}: [01/Jan/2026:00:00:00.000000] id=1 proto=tcpv4 source=127.0.0.1:1`,
          `  frontend=${name} (id=2 mode=${mode}), listener=? (id=1) addr=127.0.0.1:1`,
          `  backend=${backend.name} (id=3 mode=${mode}) addr=127.0.0.1:1`,
          `  server=${server.name} (id=1) addr=127.0.0.1:1`,
          ...(isTcp ? [] : [`  txn=${id} flags=0x3060 meth=1 ${stage} req.f=0x4c rsp.f=0x00`]),
          `  scf=${id} flags=0x00000482 ioto=1m state=EST endp=CONN,${id},0x10404001 sub=0`,
          `      co0=${id} ctrl=tcpv4 xprt=RAW mux=${mux} data=STRM target=LISTENER:0x7f0000000001`,
          `  scb=${id} flags=0x00001411 ioto=1m state=EST endp=CONN,${id},0x50400001 sub=1`,
        )
      }
    }
  }
  return texts.map((line) => `${line}\n`).join('')
}
