import { startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { rig, WEB1, type Rig } from './rig.js'

/** Visits of persistent clients, of random lengths and distances, until the member is sealed. */
function visitors(it: Rig, seed: number): () => void {
  let state = seed
  const chance = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
  let over = false
  const visit = (): void => {
    if (over || it.fake.state(WEB1) === 'maint') return
    void it.fake.occupy(WEB1).then((end) => setTimeout(() => void end(), chance() * 400))
    setTimeout(visit, 30 + chance() * 900)
  }
  visit()
  return () => {
    over = true
  }
}

test.each([
  ['in good order', false],
  ['when the answer to the seal is lost', true],
])(
  'idle is never said over a client: lag, persistence, %s',
  async (_how, lost) => {
    const LAG = 120
    const seeds = Array.from({ length: 24 }, (_, i) => 7 + i * 7_919)
    const outcomes = await Promise.all(
      seeds.map(async (seed) => {
        await using it = await rig({ statsLag: LAG }, { freshness: `${LAG}ms`, callTimeout: '15s' })
        const stop = visitors(it, seed)
        if (lost) loseTheSeal(it)
        let open = -1
        const run = startDrain(it.lb, WEB1, {
          timeout: '100s',
          settle: '50ms',
          escalateAfter: '4s',
          onEvent: (event) => {
            if (event.type === 'idle') open = it.fake.load(WEB1).curConns
          },
        })
        const { outcome } = await run.done
        stop()
        await run.close()
        return { seed, outcome, open }
      }),
    )
    for (const { seed, outcome, open } of outcomes) {
      expect({ seed, outcome, open }).toEqual({ seed, outcome: 'idle', open: 0 })
    }
  },
  120_000,
)

/** The second change is carried out, its answer and the look that should confirm it are cut off. */
function loseTheSeal(it: Rig): void {
  const timer = setInterval(() => {
    if (it.fake.state(WEB1) !== 'drain') return
    clearInterval(timer)
    it.fake.fail({ match: /^PATCH/, how: 'reset', execute: true, times: 1 })
    it.fake.fail({ match: /^GET .*members\/~Common~10.0.0.1:80$/, how: 'reset', times: 1 })
  }, 5)
}
