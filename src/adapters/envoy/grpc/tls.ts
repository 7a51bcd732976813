import * as z from 'zod/mini'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { readPem } from '../../../kit/tls.js'
import type { ServerTls } from './server.js'

/** TLS of the server: PEM texts, or paths of PEM files. */
export interface GrpcTls {
  readonly cert: string
  readonly key: string
  /** The authority of the clients' certificates: if given, a client without a certificate is refused. */
  readonly clientCa?: string | undefined
}

export const tlsOption = z.strictObject({
  cert: nonEmpty(),
  key: nonEmpty(),
  clientCa: z.exactOptional(nonEmpty()),
})

/** @throws `INVALID_OPTIONS` if a file can't be read, or is not PEM */
export function readTls(
  tls: z.output<typeof tlsOption> | undefined,
  subject: string,
): ServerTls | undefined {
  if (tls === undefined) return undefined
  const { cert, key, clientCa } = tls
  return {
    cert: readPem(cert, `${subject}: tls.cert`),
    key: readPem(key, `${subject}: tls.key`),
    clientCa: clientCa === undefined ? undefined : readPem(clientCa, `${subject}: tls.clientCa`),
  }
}
