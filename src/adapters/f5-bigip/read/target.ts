import { RecentMap } from '../../../kit/recent-map.js'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import type { MemberRow, Members } from '../codec/members.js'
import { findMembers, isPossible, partitionOf, toFullPath } from '../codec/names.js'
import { PROVIDER } from '../session/session.js'

/** The pool that is none: its members are nodes, in every pool they are in. */
export const NODES = '@nodes'

/** What a ref means on the device. */
export type Target = MemberTarget | NodeTarget

export interface MemberTarget {
  readonly kind: 'member'
  readonly ref: MemberRef
  /** Full path. */
  readonly pool: string
}

export interface NodeTarget {
  readonly kind: 'node'
  readonly ref: MemberRef
  /** Full path. */
  readonly node: string
}

/** Pools by full path; for each whether all members that are looked for are among these. */
export type Complete = ReadonlyMap<string, (members: readonly MemberRow[]) => boolean>

/** Every row that a member's name stands for: one, or an FQDN template with what it made. */
export interface Found {
  readonly row: MemberRow
  readonly ephemerals: readonly MemberRow[]
}

/**
 * Finds the members that refs name. What a name stood for once it stands for as long as it is asked for: a member added
 * later that the same short name fits is not taken for it.
 */
export class Resolver {
  readonly #partition: string
  readonly #known = new RecentMap<string, string>()

  constructor(partition: string) {
    this.#partition = partition
  }

  /** What a ref means on the device. */
  target(ref: MemberRef): Target {
    if (ref.pool === NODES)
      return { kind: 'node', ref, node: toFullPath(ref.member, this.#partition) }
    return { kind: 'member', ref, pool: toFullPath(ref.pool, this.#partition) }
  }

  /**
   * The member that a ref names; undefined where there is none.
   *
   * @throws `INVALID_OPTIONS` where the name means several: none of them is guessed at; `MALFORMED_REPLY` where it is not
   * among the rows, and one that could not be read may be it
   */
  find({ rows, odd: [doubt] }: Members, target: MemberTarget): Found | undefined {
    const { ref, pool } = target
    const found = this.#fitting(rows, target)
    const [row, second] = found
    if (row === undefined && doubt !== undefined) throw doubt
    if (row === undefined) return undefined
    if (second !== undefined) {
      const names = found.map((member) => member.fullPath).join(', ')
      throw new DrainableError(
        'INVALID_OPTIONS',
        `${formatRef(ref)} means ${found.length} members of ${pool}: ${names}; name one of them`,
        { provider: PROVIDER, ref },
      )
    }
    this.#known.set(refKey(ref), row.fullPath)
    return { row, ephemerals: row.template ? ephemeralsOf(rows, row) : [] }
  }

  /** The pools of targets. */
  poolsOf(targets: readonly Target[]): Complete {
    const members = targets.flatMap((target) => (target.kind === 'member' ? target : []))
    return new Map(
      [...Map.groupBy(members, ({ pool }) => pool)].map(([pool, own]) => [
        pool,
        (rows) => own.every((target) => this.#fitting(rows, target).length > 0),
      ]),
    )
  }

  #fitting(members: readonly MemberRow[], { ref, pool }: MemberTarget): readonly MemberRow[] {
    if (ref.member === '' || !isPossible(toFullPath(ref.member, this.#partition))) return []
    const name = this.#known.get(refKey(ref)) ?? ref.member
    return findMembers(members, name, [partitionOf(pool), this.#partition])
  }
}

/** Members that a node serves: its own, and those made by its templates, which have nodes of their own. */
export function membersOfNode(members: readonly MemberRow[], node: string): readonly MemberRow[] {
  return members
    .filter((member) => member.node === node)
    .flatMap((row) => [row, ...(row.template ? ephemeralsOf(members, row) : [])])
}

/** What a template made: same DNS name, same port. */
function ephemeralsOf(members: readonly MemberRow[], template: MemberRow): readonly MemberRow[] {
  return members.filter(
    (member) => member.ephemeral && member.port === template.port && member.fqdn === template.fqdn,
  )
}

/** Address, port and full path: what makes a member the one it is. */
export function identityOf(row: MemberRow): string {
  const where = row.template ? (row.fqdn ?? 'fqdn') : (row.address ?? '')
  return `${row.fullPath} at ${where} port ${row.port}`
}
