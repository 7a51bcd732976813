/**
 * The part of a Node (`v1`) that is read. The objects of any client fit, and so does the JSON of the API; other
 * fields are ignored.
 */
export interface Node {
  readonly metadata?: {
    readonly name?: string | null
    readonly uid?: string | null
    readonly labels?: Readonly<Record<string, string>> | null
    /** When its deletion was requested; it stays until its finalizers are done. */
    readonly deletionTimestamp?: string | Date | null
  } | null
  readonly spec?: {
    readonly taints?: readonly NodeTaint[] | null
    /** Whether it is cordoned. */
    readonly unschedulable?: boolean | null
  } | null
  readonly status?: {
    readonly addresses?: readonly NodeAddress[] | null
    readonly conditions?: readonly NodeCondition[] | null
  } | null
}

/** A taint of a node: only its key is read. */
export interface NodeTaint {
  readonly key: string
}

/** An address of a node. */
export interface NodeAddress {
  /** The type, such as `InternalIP`. */
  readonly type: string
  readonly address: string
}

/** A condition of a node: `Ready`, and those that mark a leaving node, are read. */
export interface NodeCondition {
  readonly type: string
  /** `True`, `False` or `Unknown`. */
  readonly status: string
}
