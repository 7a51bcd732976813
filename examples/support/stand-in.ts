/** An API server that knows one kind of object, in place of a real one. */
import { EventEmitter } from 'node:events'
import type { InformerLike } from './informed.ts'

export class StandIn {
  #objects: readonly unknown[]
  #live = new EventEmitter()

  constructor(...objects: readonly unknown[]) {
    this.#objects = objects
  }

  readonly make = (): InformerLike<unknown> => {
    const events = (this.#live = new EventEmitter())
    return {
      on: (event: string, listener: (what: unknown) => void) => void events.on(event, listener),
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      list: () => this.#objects,
    }
  }

  put(...objects: readonly unknown[]): void {
    this.#objects = objects
    this.#live.emit('update', objects[0])
  }

  /** The watch ends with an error; what is put afterwards is seen by the next list. */
  fail(): void {
    this.#live.emit('error', new Error('500: etcdserver: leader changed'))
  }
}

/** An EndpointSlice of two pods; those that are named are terminating. */
export function twoPods(...leaving: readonly string[]): unknown {
  return {
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: ['10.0.0.1', '10.0.0.2'].map((address) => {
      const terminating = leaving.includes(address)
      return {
        addresses: [address],
        nodeName: 'node-1',
        conditions: { ready: !terminating, serving: true, terminating },
      }
    }),
  }
}

export const readyNode: unknown = {
  metadata: { name: 'node-1' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
}
