import type { HaproxyFake } from 'drainable/testing/haproxy-runtime'

/** A fake HAProxy on unix sockets, as the command line names it. */
export function haproxyUrl({ socket, master }: Pick<HaproxyFake, 'socket' | 'master'>): string {
  if (typeof socket !== 'string') throw new Error('expected a unix socket')
  return `haproxy:${socket}${typeof master === 'string' ? `?master=${master}` : ''}`
}
