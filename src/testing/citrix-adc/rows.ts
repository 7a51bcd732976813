import {
  type Config,
  type Group,
  isHttp,
  type Plain,
  type Service,
  type Vserver,
} from './config.js'
import type { Entity, Server } from './entity.js'
import type { Dialect, FakeOptions } from './options.js'

/** `servicegroup_servicegroupmember_binding` */
export function memberRow(group: Group, one: Entity, dialect: Dialect): Plain {
  return {
    servicegroupname: group.name,
    ip: one.server.address,
    port: one.port,
    svrstate: one.svrstate,
    ...(dialect.memberFields
      ? {
          statechangetimesec: ctime(one.changedAt),
          tickssincelaststatechange: String(Math.floor((Date.now() - one.changedAt) / 10)),
          state: one.disabled ? 'DISABLED' : 'ENABLED',
          graceful: one.leaving.graceful ? 'YES' : 'NO',
          delay: one.leaving.delay,
          trofsreason: one.monitorTrofs ? 'Monitor set TROFS' : '',
          trofsdelay: 0,
          orderstr: 'Default',
        }
      : {}),
    weight: String(one.weight),
    servername: one.server.name,
    customserverid: 'None',
    serverid: '0',
    hashid: '0',
  }
}

/** `servicegroup` */
export function groupRow(group: Group, dialect: Dialect): Plain {
  const up = group.members.some(({ svrstate }) => svrstate === 'UP')
  return {
    servicegroupname: group.name,
    numofconnections: 0,
    servicetype: group.servicetype,
    td: '0',
    serviceconftype: true,
    cachetype: 'SERVER',
    maxclient: '0',
    maxreq: '0',
    usip: 'NO',
    clttimeout: 180,
    svrtimeout: 360,
    downstateflush: group.downstateflush,
    state: group.enabled ? 'ENABLED' : 'DISABLED',
    svrstate: up ? 'UP' : 'DOWN',
    monstate: 'ENABLED',
    delay: 0,
    graceful: 'NO',
    appflowlog: 'ENABLED',
    ...(dialect.memberFields
      ? {
          healthmonitor: 'YES',
          autoscale: group.autoscale,
          servicegroupeffectivestate: !group.enabled ? 'OUT OF SERVICE' : up ? 'UP' : 'DOWN',
          autodisablegraceful: 'NO',
          autodisabledelay: '0',
        }
      : {}),
    ...group.extra,
  }
}

/** `service` */
export function serviceRow(service: Service, dialect: Dialect): Plain {
  const one = service.entity
  return {
    name: service.name,
    ip: one.server.address,
    ipaddress: one.server.address,
    servername: one.server.name,
    port: one.port,
    servicetype: service.servicetype,
    clttimeout: 180,
    svrtimeout: 360,
    downstateflush: service.downstateflush,
    healthmonitor: 'YES',
    ...service.extra,
    svrstate: one.svrstate,
    ...(dialect.memberFields
      ? {
          graceful: one.leaving.graceful ? 'YES' : 'NO',
          delay: one.leaving.delay,
          statechangetimesec: ctime(one.changedAt),
          tickssincelaststatechange: String(Math.floor((Date.now() - one.changedAt) / 10)),
        }
      : {}),
    state: one.disabled ? 'DISABLED' : 'ENABLED',
  }
}

/** `server` */
export function serverRow(server: Server): Plain {
  return {
    name: server.name,
    ipaddress: server.address,
    td: '0',
    state: server.enabled ? 'ENABLED' : 'DISABLED',
  }
}

/** `lbvserver` */
export function vserverRow(config: Config, vserver: Vserver): Plain {
  const up = servingOf(config, vserver)
  return {
    name: vserver.name,
    ipv46: '192.0.2.254',
    port: 80,
    servicetype: vserver.servicetype,
    persistencetype: 'NONE',
    lbmethod: 'LEASTCONNECTION',
    downstateflush: 'ENABLED',
    ...vserver.extra,
    trofspersistence: vserver.trofspersistence,
    ...(vserver.backupvserver === undefined ? {} : { backupvserver: vserver.backupvserver }),
    curstate: !vserver.enabled ? 'OUT OF SERVICE' : up > 0 ? 'UP' : 'DOWN',
    effectivestate: up > 0 ? 'UP' : 'DOWN',
    status: up > 0 ? 1 : 0,
    totalservices: String(vserver.services.length),
    activeservices: String(up),
  }
}

/** `lbvserver_service_binding` */
export function boundServiceRow(vserver: Vserver, service: Service, weight: number): Plain {
  return {
    name: vserver.name,
    servicename: service.name,
    ipv46: service.entity.server.address,
    port: service.entity.port,
    servicetype: service.servicetype,
    curstate: service.entity.svrstate,
    weight: String(weight),
    dynamicweight: '0',
    vserverid: '0',
  }
}

/** `lbvserver_servicegroupmember_binding` */
export function boundMemberRow(vserver: Vserver, group: Group, one: Entity): Plain {
  return {
    name: vserver.name,
    servicegroupname: group.name,
    ipv46: one.server.address,
    port: one.port,
    servicetype: group.servicetype,
    curstate: one.svrstate,
    weight: String(one.weight),
    dynamicweight: '0',
    vserverid: '0',
  }
}

/** `server_servicegroup_binding` and `server_service_binding` share most of a row. */
export function carriedRow(server: Server, type: string, one: Entity): Plain {
  return {
    name: server.name,
    svctype: type,
    serviceipaddress: server.address,
    port: one.port,
    svrstate: one.svrstate,
  }
}

/** Numbers of `stat`: gauges and totals are decimal texts, rates and ports are numbers. */
export function statRow(one: Entity, type: string): Plain {
  const { active, queued, pooled, idleClients, connecting, total } = one.load
  const established = active + pooled
  return {
    throughput: '0',
    throughputrate: 0,
    avgsvrttfb: '3',
    primaryipaddress: one.server.address,
    primaryport: one.port,
    servicetype: type,
    state: one.svrstate,
    totalrequests: isHttp(type) ? String(total) : '0',
    requestsrate: 0,
    totalresponses: isHttp(type) ? String(total) : '0',
    responsesrate: 0,
    totalrequestbytes: '0',
    requestbytesrate: 0,
    totalresponsebytes: '0',
    responsebytesrate: 0,
    curclntconnections: String(active + queued + idleClients),
    surgecount: String(queued),
    cursrvrconnections: String(established + connecting),
    svrestablishedconn: String(established),
    curreusepool: String(pooled),
    maxclients: '0',
  }
}

/** `stat/service` */
export function serviceStat(service: Service): Plain {
  const { active, queued } = service.entity.load
  return {
    name: service.name,
    ...statRow(service.entity, service.servicetype),
    curload: '0',
    vsvrservicehits: String(service.entity.load.total),
    vsvrservicehitsrate: 0,
    activetransactions: isHttp(service.servicetype) ? String(active + queued) : '0',
  }
}

/** `stat/servicegroupmember`: no transactions there. */
export function memberStat(group: Group, one: Entity, totals: boolean): Plain {
  const { totalrequests, requestsrate, totalresponses, responsesrate, ...row } = statRow(
    one,
    group.servicetype,
  )
  return {
    servicegroupname: group.name,
    ...row,
    ...(totals ? { totalrequests, requestsrate, totalresponses, responsesrate } : {}),
  }
}

/** A member below its group, by another name. */
export function nestedStat(
  group: Group,
  one: Entity,
  totals: NonNullable<FakeOptions['memberTotals']>,
): Plain {
  const servicegroupname = `${group.name}?${one.server.name}?${one.port}`
  return { ...memberStat(group, one, totals === 'both'), servicegroupname }
}

/** `stat/lbvserver` */
export function vserverStat(config: Config, vserver: Vserver): Plain {
  const up = servingOf(config, vserver)
  const sum = (pick: (one: Entity) => number): string => {
    let total = 0
    for (const { name } of vserver.services) {
      const service = config.services.get(name)
      if (service) total += pick(service.entity)
    }
    return String(total)
  }
  return {
    name: vserver.name,
    primaryipaddress: '192.0.2.254',
    primaryport: 80,
    type: vserver.servicetype,
    state: !vserver.enabled ? 'OUT OF SERVICE' : up > 0 ? 'UP' : 'DOWN',
    vslbhealth:
      vserver.services.length === 0
        ? '0'
        : String(Math.round((100 * up) / vserver.services.length)),
    actsvcs: String(up),
    inactsvcs: String(vserver.services.length - up),
    curclntconnections: sum(({ load }) => load.active + load.queued + load.idleClients),
    cursrvrconnections: sum(({ load }) => load.active + load.pooled),
    surgecount: sum(({ load }) => load.queued),
    requestsrate: 0,
  }
}

function servingOf(config: Config, vserver: Vserver): number {
  let up = 0
  for (const { name } of vserver.services) {
    if (config.services.get(name)?.entity.svrstate === 'UP') up++
  }
  for (const name of vserver.groups) {
    up += config.groups.get(name)?.members.filter((one) => one.svrstate === 'UP').length ?? 0
  }
  return up
}

/** `Fri Mar  8 11:56:56 2013`, as the appliance writes a moment. */
export function ctime(at: number): string {
  const [, weekday, date, month, year, time] =
    /^(\w+), (\d+) (\w+) (\d+) ([\d:]+)/.exec(new Date(at).toUTCString()) ?? []
  const padded = String(Number(date ?? '1')).padStart(2)
  return `${weekday ?? ''} ${month ?? ''} ${padded} ${time ?? ''} ${year ?? ''}`
}
