import type { EndpointInput } from '../endpoints/endpoint-input.js'
import { markByNodes } from '../endpoints/nodes/mark-by-nodes.js'
import { whyEnding, type NodeEnd } from '../endpoints/nodes/node-end.js'
import { nodeShape, type Node } from '../endpoints/nodes/node.js'
import { check } from '../endpoints/shape.js'
import type { KubeObject } from './api.js'

/**
 * What is known of Nodes. Slices and Nodes come by two watches, and nothing orders one by the other: a Node that was
 * never seen may be newer than the last list, so only one that was there and has gone counts as deleted.
 */
export class KnownNodes {
  readonly #end: NodeEnd
  readonly #nodes = new Map<string, Node>()
  readonly #gone = new Set<string>()

  constructor(end: NodeEnd) {
    this.#end = end
    markByNodes([], [], end) // checks it
  }

  /** @returns whether an endpoint may be judged otherwise now: Nodes tell of their health every few minutes */
  put(before: KubeObject | undefined, after: KubeObject | undefined): boolean {
    const name = (after ?? before)?.metadata?.name ?? ''
    const was = this.#why(name)
    if (after === undefined) {
      this.#nodes.delete(name)
      this.#gone.add(name)
    } else {
      check('followService()', 'Node', after, nodeShape())
      this.#nodes.set(name, after)
      this.#gone.delete(name)
    }
    return was !== this.#why(name)
  }

  /** Takes in a whole list. */
  replace(before: readonly KubeObject[], now: ReadonlyMap<string, KubeObject>): boolean {
    for (const one of before) this.put(one, undefined)
    for (const one of now.values()) this.put(undefined, one)
    return true
  }

  /** Marks endpoints of Nodes that are leaving, or gone. */
  mark(endpoints: readonly EndpointInput[]): EndpointInput[] {
    const names = new Set(endpoints.map(({ nodeName }) => nodeName ?? ''))
    const nodes = [...names].flatMap((name) => {
      const known = this.#nodes.get(name)
      if (known !== undefined) return [known]
      return this.#gone.has(name) ? [] : [{ metadata: { name } }]
    })
    return markByNodes(endpoints, nodes, this.#end)
  }

  #why(name: string): string | undefined {
    const node = this.#nodes.get(name)
    if (node === undefined) return this.#gone.has(name) ? 'gone' : undefined
    return whyEnding(node, this.#end)
  }
}
