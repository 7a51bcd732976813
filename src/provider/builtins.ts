import type * as Net from 'node:net'

/**
 * Node's own modules, each loaded when it is first used. An `import` of one loads all that it exports, and with the package:
 * that was a fifth of what the import of `drainable` took (`npm run bench -- package/imports`).
 */
export const nodeCrypto = () => process.getBuiltinModule('crypto')
export const nodeFs = () => process.getBuiltinModule('fs')
export const nodeOs = () => process.getBuiltinModule('os')
export const nodeUtil = () => process.getBuiltinModule('util')

let known: typeof Net.isIP | undefined

/** `isIP` of `node:net`: 4 or 6 for an address, 0 for anything else. It is asked for each row of a large balancer. */
export function isIP(text: string): number {
  known ??= process.getBuiltinModule('net').isIP
  return known(text)
}
