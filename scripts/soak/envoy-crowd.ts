import { drainCrowd } from '../../test/support/envoy/crowd.ts'
import { engines } from '../../test/support/engines.ts'

const PROXIES = 30

/** Drains over thirty real Envoys of each version. @returns whether idle was never said wrongly */
export async function drainCrowds(say: (line: string) => void): Promise<boolean> {
  let isRight = true
  for (const engine of engines('envoy')) {
    const { proxies, scopes, took, faults } = await drainCrowd(engine, PROXIES)
    say(
      `Envoy ${engine.version}: ${scopes} of ${proxies} proxies in the proof, idle after ${Math.round(took)} ms`,
    )
    for (const fault of faults) say(`  ${fault}`)
    isRight &&= faults.length === 0 && scopes === proxies
  }
  return isRight
}
