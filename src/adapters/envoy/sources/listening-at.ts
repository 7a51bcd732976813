let ephemeral = 0

/**
 * The name of a server for proxies. With port 0 the system chooses a port for each: they are told apart by their order
 * in this process, because drains of one name share their floor.
 */
export function listeningAt(kind: 'grpc' | 'rest', host: string, port: number): string {
  if (port !== 0) return `${kind}:${host}:${port}`
  ephemeral += 1
  return `${kind}:${host}:0#${ephemeral}`
}
