import { once } from '../../provider/once.js'
import { flag, list, named, nullable, object, text } from '../shape.js'

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

/** The shape of a {@link Node}. */
export const nodeShape = once(() =>
  named(
    ({ metadata }) => (metadata as Node['metadata'])?.name,
    object<Node>('a Node', {
      metadata: nullable(
        object<NonNullable<Node['metadata']>>('an object', {
          name: nullable(text),
          labels: nullable(object('an object', {})),
        }),
      ),
      spec: nullable(
        object<NonNullable<Node['spec']>>('an object', {
          unschedulable: nullable(flag),
          taints: nullable(list('a list', object<NodeTaint>('an object', { key: text }))),
        }),
      ),
      status: nullable(
        object<NonNullable<Node['status']>>('an object', {
          addresses: nullable(
            list('a list', object<NodeAddress>('an object', { type: text, address: text })),
          ),
          conditions: nullable(
            list('a list', object<NodeCondition>('an object', { type: text, status: text })),
          ),
        }),
      ),
    }),
  ),
)

/** The shape of all Nodes. */
export const nodesShape = once(() => list('a list of Nodes', nodeShape()))
