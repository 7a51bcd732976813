import { PRODUCTS } from '../../test/model/devices/device.ts'
import { playOnDevice } from '../../test/model/devices/story.ts'
import { Figures } from '../../test/model/figures.ts'

/** Plays so many random stories on the fake of each product that is reached over HTTP. @returns whether nothing was found */
export async function devicesAtRandom(
  {
    seed: first,
    runs,
    only,
  }: { readonly seed: number; readonly runs: number; readonly only: string },
  say: (line: string) => void,
): Promise<boolean> {
  let broken = 0
  for (const product of PRODUCTS.filter((name) => only === '' || name === only)) {
    const startedAt = performance.now()
    const figures = new Figures()
    for (let seed = first; seed < first + runs; seed += 1) {
      const lines: string[] = []
      const { faults, counts } = await playOnDevice(product, seed, (line) => lines.push(line))
      for (const [what, n] of counts) figures.add(what, n)
      if (faults.length === 0) continue
      broken += 1
      for (const line of lines) say(`  ${line}`)
      say(`${product}, seed ${seed}: ${faults.join('; ')}`)
    }
    for (const [what, n] of figures.entries()) say(`  ${what.padEnd(34)} ${n}`)
    const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
    say(`${product}: ${runs} stories from seed ${first} in ${took} s`)
  }
  say(`${broken} broken`)
  return broken === 0
}
