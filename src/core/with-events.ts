import { EventEmitter } from 'eventemitter3'
import type { DrainableProvider } from '../provider/contract.js'

// PLACEHOLDER while the core is under construction; the signature is final.
export interface ProviderEvents {
  on(e: string, fn: (ev: never) => void): this
  off(e: string, fn: (ev: never) => void): this
}
export function withEvents<P extends DrainableProvider>(provider: P): P & ProviderEvents {
  const emitter = new EventEmitter()
  return Object.assign(provider, {
    on(e: string, fn: (ev: never) => void) {
      emitter.on(e, fn as never)
      return provider
    },
    off(e: string, fn: (ev: never) => void) {
      emitter.off(e, fn as never)
      return provider
    },
  }) as never
}
