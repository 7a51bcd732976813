import { grownByLook, type Looker } from '../../test/unit/core/memory/heap.ts'

const LOOKERS: readonly Looker[] = [
  'a drain that is held',
  'a drain that waits for its work',
  'a watch',
]
/** Bytes a look: less is what the collector leaves about. */
const MOST = 10

/** Measures by how much the heap grows over so many looks. @returns whether it stays flat */
export async function heapStaysFlat(looks: number, say: (line: string) => void): Promise<boolean> {
  let flat = true
  for (const looker of LOOKERS) {
    const startedAt = performance.now()
    const grown = await grownByLook(looker, looks)
    if (grown >= MOST) flat = false
    const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
    say(`${looks} looks of ${looker}: ${grown.toFixed(2)} bytes a look, ${took} s`)
  }
  return flat
}
