/**
 * Names as the device writes them. A full path `/Partition/folder/name` is one URL segment
 * `~Partition~folder~name`; a name without a path means `/Common`. A member is `node:port`, or
 * `node.port` where the node's name has a colon (IPv6).
 */

/** A URL segment, already percent-decoded, as a full path. */
export function fromSegment(segment: string): string {
  const path = segment.replaceAll('~', '/')
  return path.startsWith('/') ? path : `/Common/${path}`
}

/** A full path as it stands in a selfLink: `%` is escaped, `:` is not. */
export function toSegment(fullPath: string): string {
  return encodeURI(fullPath.replaceAll('/', '~'))
}

/** `/Common/app/web` as `/Common/app` and `web`. */
export function splitPath(fullPath: string): { readonly folder: string; readonly name: string } {
  const at = fullPath.lastIndexOf('/')
  return { folder: fullPath.slice(0, at), name: fullPath.slice(at + 1) }
}

/** The first part of a full path. */
export function partitionOf(fullPath: string): string {
  return fullPath.split('/')[1] ?? 'Common'
}

/** Node name and port of a member's name; undefined where there is no port. */
export function splitMember(
  name: string,
): { readonly node: string; readonly port: number } | undefined {
  const colons = name.split(':').length - 1
  const at = colons > 1 ? name.lastIndexOf('.') : name.lastIndexOf(':')
  const port = name.slice(at + 1)
  if (at <= 0 || !/^\d{1,5}$/.test(port) || Number(port) > 65_535) return undefined
  return { node: name.slice(0, at), port: Number(port) }
}

/** A member's name, with the separator the node's name asks for. */
export function joinMember(node: string, port: number): string {
  return `${node}${node.includes(':') ? '.' : ':'}${port}`
}
