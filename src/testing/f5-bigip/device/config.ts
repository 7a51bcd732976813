import type { AdminState } from '../../../provider/contract.js'
import { joinMember, partitionOf, splitMember, splitPath } from '../rest/names.js'

/** Verdict of a monitor; `unchecked` where none is assigned. */
export type MonitorState = 'up' | 'down' | 'checking' | 'unchecked'

/** What both members and nodes have: two words that are written, and a monitor's verdict. */
export interface Switchable {
  session: 'user-enabled' | 'user-disabled'
  forcedDown: boolean
  monitor: MonitorState
  /** Until then the monitor has not decided (`performance.now()`). */
  checkedAt: number
  generation: number
}

export interface FakeNode extends Switchable {
  readonly fullPath: string
  readonly address: string
  readonly ephemeral: boolean
  readonly fqdn: string | undefined
}

export interface FakeMember extends Switchable {
  readonly fullPath: string
  readonly node: string
  readonly port: number
  readonly address: string
  readonly ephemeral: boolean
  readonly fqdn: string | undefined
  props: Record<string, unknown>
}

export interface FakePool {
  readonly fullPath: string
  readonly members: Map<string, FakeMember>
  props: Record<string, unknown>
  generation: number
}

/** A member in the options of the fake. */
export interface FakeMemberOptions {
  /** Name, such as `10.0.0.1:80`, `2001:db8::1.80`, `web1:80` or `/Common/web1:80`. */
  readonly name: string
  /** Address of its node, with the route domain if there is one. Default: from the name, or one of 10.0.0.0/8 */
  readonly address?: string
  /** Port, where the name has none. Default 80. */
  readonly port?: number
  /** `host:port` of a real server: the fake forwards connections of {@link BigipFake.virtual} to it. */
  readonly to?: string
  /** Verdict of the monitor. Default `up`. */
  readonly monitor?: MonitorState
  /** DNS name: makes it an FQDN template, which takes no traffic itself. */
  readonly fqdn?: string
  /** Made by the template of that DNS name in this pool. */
  readonly ephemeral?: boolean
  /** As AS3 marks what it owns. */
  readonly declared?: boolean
  /** Writes are refused, as for objects of an application service with strict updates. */
  readonly strict?: boolean
  /** Weight. Default 1. */
  readonly ratio?: number
}

/** One pool in the options of the fake. */
export type FakePoolOptions = readonly (string | FakeMemberOptions)[]

/** Pools, members and nodes of one unit. */
export class Config {
  readonly pools = new Map<string, FakePool>()
  readonly nodes = new Map<string, FakeNode>()
  /** Moves with every change that a sync would push. */
  revision = 1

  /** A copy that shares nothing, for the other unit of a pair. */
  copyFrom(other: Config): void {
    this.pools.clear()
    this.nodes.clear()
    for (const [name, node] of other.nodes) this.nodes.set(name, { ...node })
    for (const [name, pool] of other.pools) {
      const members = new Map([...pool.members].map(([key, member]) => [key, { ...member }]))
      this.pools.set(name, { ...pool, members, props: { ...pool.props } })
    }
    this.revision = other.revision
  }

  addPool(fullPath: string, props: Readonly<Record<string, unknown>> = {}): FakePool {
    const pool: FakePool = {
      fullPath,
      members: new Map(),
      generation: 1,
      props: { ...POOL_DEFAULTS, ...props },
    }
    this.pools.set(fullPath, pool)
    return pool
  }

  addMember(pool: FakePool, member: FakeMember): FakeMember {
    if (!this.nodes.has(member.node)) {
      this.nodes.set(member.node, {
        fullPath: member.node,
        address: member.address,
        ephemeral: member.ephemeral,
        fqdn: member.fqdn,
        session: 'user-enabled',
        forcedDown: false,
        monitor: 'unchecked',
        checkedAt: 0,
        generation: 1,
      })
    }
    pool.members.set(member.fullPath, member)
    return member
  }
}

const POOL_DEFAULTS: Readonly<Record<string, unknown>> = {
  allowNat: 'yes',
  allowSnat: 'yes',
  ignorePersistedWeight: 'disabled',
  ipTosToClient: 'pass-through',
  ipTosToServer: 'pass-through',
  linkQosToClient: 'pass-through',
  linkQosToServer: 'pass-through',
  loadBalancingMode: 'round-robin',
  minActiveMembers: 0,
  minUpMembers: 0,
  minUpMembersAction: 'failover',
  minUpMembersChecking: 'disabled',
  monitor: '/Common/http',
  queueDepthLimit: 0,
  queueOnConnectionLimit: 'disabled',
  queueTimeLimit: 0,
  reselectTries: 0,
  serviceDownAction: 'none',
  slowRampTime: 10,
}

const MEMBER_DEFAULTS: Readonly<Record<string, unknown>> = {
  connectionLimit: 0,
  dynamicRatio: 1,
  inheritProfile: 'enabled',
  logging: 'disabled',
  monitor: 'default',
  priorityGroup: 0,
  rateLimit: 'disabled',
  ratio: 1,
}

/** Properties a write of a member may carry; others are refused as unknown. */
export const MEMBER_PROPERTIES: ReadonlySet<string> = new Set([
  ...Object.keys(MEMBER_DEFAULTS),
  ...['kind', 'name', 'partition', 'subPath', 'fullPath', 'generation', 'selfLink', 'address'],
  ...['session', 'state', 'ephemeral', 'fqdn', 'description', 'metadata', 'profiles', 'appService'],
  ...['nameReference', 'addressReference', 'checks', 'creationTime', 'lastModifiedTime'],
])

/** A member as the options describe it; `index` gives unnamed addresses. */
export function toMember(
  pool: string,
  option: string | FakeMemberOptions,
  index: number,
): FakeMember {
  const given: FakeMemberOptions = typeof option === 'string' ? { name: option } : option
  const full = given.name.startsWith('/') ? given.name : `/${partitionOf(pool)}/${given.name}`
  const { folder, name } = splitPath(full)
  const parts = splitMember(name) ?? { node: name, port: given.port ?? 80 }
  const port = given.port ?? parts.port
  const bare = parts.node.replace(/^_auto_/, '')
  const fallback = /^[\d.]+(%\d+)?$|:/.test(bare)
    ? bare
    : `10.255.${Math.floor(index / 250)}.${(index % 250) + 1}`
  const template = given.fqdn !== undefined && given.ephemeral !== true
  return {
    fullPath: `${folder}/${joinMember(parts.node, port)}`,
    node: `${folder}/${parts.node}`,
    port,
    address: given.address ?? (template ? 'any6' : fallback),
    ephemeral: given.ephemeral === true,
    fqdn: given.fqdn,
    session: 'user-enabled',
    forcedDown: false,
    monitor: given.monitor ?? 'up',
    checkedAt: 0,
    generation: 1,
    props: {
      ...MEMBER_DEFAULTS,
      ...(given.ratio === undefined ? {} : { ratio: given.ratio }),
      ...(given.declared === true
        ? { metadata: [{ name: 'source', persist: 'true', value: 'declaration' }] }
        : {}),
      ...(given.strict === true ? { appService: `${folder}/app.app/app` } : {}),
    },
  }
}

/** A member as a write creates it; the written state is dropped, as on the device. */
export function createdMember(
  fullPath: string,
  address: string,
  body: Readonly<Record<string, unknown>>,
): FakeMember {
  const { folder, name } = splitPath(fullPath)
  const made = toMember(folder, { name: fullPath, address }, 0)
  const kept = Object.entries(body).filter(([key]) => key in MEMBER_DEFAULTS || key === 'metadata')
  return {
    ...made,
    node: `${folder}/${splitMember(name)?.node ?? name}`,
    session: body['session'] === 'user-disabled' ? 'user-disabled' : 'user-enabled',
    props: { ...made.props, ...Object.fromEntries(kept) },
  }
}

/** The two words as they are read: never the ones that were written. */
export function readState(of: Switchable & { readonly fqdn?: string | undefined }): {
  readonly session: string
  readonly state: string
} {
  const template = of.fqdn !== undefined && !('ephemeral' in of && of.ephemeral === true)
  const verdict =
    of.monitor !== 'unchecked' && performance.now() < of.checkedAt ? 'checking' : of.monitor
  const state = of.forcedDown ? 'user-down' : template ? 'fqdn-up' : verdict
  if (of.session === 'user-disabled') return { session: 'user-disabled', state }
  const monitored = of.monitor !== 'unchecked' && !of.forcedDown && !template
  return { session: monitored ? 'monitor-enabled' : 'user-enabled', state }
}

/** A member's or a node's own state. */
export function stateOf(of: FakeMember | FakeNode): AdminState {
  if (of.forcedDown) return 'maint'
  return of.session === 'user-disabled' ? 'drain' : 'ready'
}

/** Sets it as a person at the device would. */
export function switchTo(of: FakeMember | FakeNode, to: AdminState): void {
  of.session = to === 'ready' ? 'user-enabled' : 'user-disabled'
  of.forcedDown = to === 'maint'
  of.generation += 1
}
