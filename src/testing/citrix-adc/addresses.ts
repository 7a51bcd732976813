/** NSIPs of the two nodes of a pair. */
export const ADDRESSES = ['192.0.2.240', '192.0.2.241'] as const

export function otherOf(address: string): string {
  return address === ADDRESSES[0] ? ADDRESSES[1] : ADDRESSES[0]
}
