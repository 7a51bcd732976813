import type { MemoryServer } from './memory-server.js'

/** What `show info` prints. */
export function printInfo(version: string, pid: number, uptime: number): string {
  return Object.entries({
    Name: 'HAProxy',
    Version: version,
    Release_date: '2026/10/14',
    Nbthread: 2,
    Nbproc: 1,
    Process_num: 1,
    Pid: pid,
    Uptime: `0d 0h00m${uptime}s`,
    Uptime_sec: uptime,
    Maxconn: 9984,
    Hard_maxconn: 9984,
    CurrConns: 0,
    CumConns: 8,
    CumReq: 4,
    Tasks: 22,
    Run_queue: 1,
    Idle_pct: 100,
    node: 'fake',
    Stopping: 0,
    Jobs: 7,
    Listeners: 4,
  })
    .map(([key, value]) => `${key}: ${value}`)
    .join('\n')
}

/** A server's row in `show stat`. */
export function serverRow(
  name: string,
  backend: { readonly id: number; readonly mode: string },
  server: MemoryServer,
): Record<string, string | number> {
  const live = server.checked && !server.inMaint
  return {
    pxname: name,
    svname: server.name,
    qcur: server.qcur,
    qmax: server.qmax,
    scur: server.scur,
    ...(server.maxconn === undefined ? {} : { slim: server.maxconn }),
    stot: server.stot,
    lbtot: server.stot,
    wretr: server.wretr,
    wredis: 0,
    status: server.status,
    weight: server.shownWeight,
    act: server.backup ? 0 : 1,
    bck: server.backup ? 1 : 0,
    ...(server.checked ? { chkfail: 0, downtime: 0 } : {}),
    lastchg: server.lastChange,
    lastsess: server.stot > 0 ? 0 : -1,
    pid: 1,
    iid: backend.id,
    sid: server.id,
    type: 2,
    mode: backend.mode === 'log' ? 'syslog' : backend.mode,
    addr: `${server.address}:${server.port}`,
    ...(backend.mode === 'http' ? { req_tot: server.stot } : {}),
    ...(server.track === undefined ? {} : { tracked: server.track }),
    ...(live
      ? {
          check_status: 'L4OK',
          check_duration: 0,
          check_desc: 'Layer4 check passed',
          check_rise: server.rise,
          check_fall: server.fall,
          check_health: server.health,
        }
      : {}),
    cli_abrt: 0,
    srv_abrt: 0,
    econ: 0,
    eresp: 0,
    dresp: 0,
    qtime: 0,
    ctime: 0,
    rtime: 0,
    ttime: 0,
  }
}
