/**
 * What is read of a Node (`v1`). The objects of any client fit, and so does the JSON of the API;
 * fields not named here are not looked at.
 */
export interface Node {
  readonly metadata?: {
    readonly name?: string | null
    readonly uid?: string | null
    readonly labels?: Readonly<Record<string, string>> | null
    /** When it was asked to go; it stays until its finalizers are done. */
    readonly deletionTimestamp?: string | Date | null
  } | null
  readonly spec?: {
    readonly taints?: readonly NodeTaint[] | null
    /** Cordoned. */
    readonly unschedulable?: boolean | null
  } | null
  readonly status?: {
    readonly addresses?: readonly NodeAddress[] | null
    readonly conditions?: readonly NodeCondition[] | null
  } | null
}

/** A taint of a node: only its key is looked at. */
export interface NodeTaint {
  readonly key: string
}

/** An address of a node. */
export interface NodeAddress {
  /** Such as `InternalIP`. */
  readonly type: string
  readonly address: string
}

/** A condition of a node: `Ready` is looked at, and those that say that it is about to go. */
export interface NodeCondition {
  readonly type: string
  /** `True`, `False` or `Unknown`. */
  readonly status: string
}
