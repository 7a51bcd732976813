/**
 * Records what a BIG-IP answers while its REST framework starts: each new status and its words, with the times between
 * which they were given. Restart the device, or its REST framework (`restart sys service restjavad`), meanwhile.
 *
 * It asks by GET alone and changes nothing. RECORD_URL, RECORD_USER, RECORD_PASSWORD and RECORD_CA or RECORD_PIN name
 * the device, RECORD_SECONDS how long (900). Without a URL it records the stand-in, which restarts at once.
 */
import { startFake, type BigipFake } from 'drainable/testing/f5-bigip'
import { anonymous, device, Recorder } from './support/recorder.ts'

const PATHS = {
  ready: '/mgmt/tm/sys/ready',
  pools: '/mgmt/tm/ltm/pool?$top=1&$select=name',
  role: '/mgmt/tm/cm/failover-status',
} as const

let fake: BigipFake | undefined
await using at = await device(async () => (fake = await startFake()))
await using recorder = new Recorder(at, 'basic', 900)
if (fake !== undefined) await fake.restart()

/** Words of an error, in JSON or as a page; none of a success. */
function wordsOf(status: number, text: string): string {
  if (status < 300) return ''
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown }
    return anonymous(typeof message === 'string' ? message : '')
  } catch {
    return anonymous(text.slice(0, 2_000))
  }
}

async function answerOf(path: string): Promise<{ status: number | string; words: string }> {
  try {
    const { status, text } = await recorder.get(path)
    return { status, words: wordsOf(status, text) }
  } catch (error) {
    const code = Object(error) as { readonly code?: unknown }
    return { status: typeof code.code === 'string' ? code.code : 'no answer', words: '' }
  }
}

const last = new Map<string, string>()
await recorder.every(1_000, async () => {
  for (const [what, path] of Object.entries(PATHS)) {
    const answer = await answerOf(path)
    const shown = `${answer.status} ${answer.words}`
    if (last.get(what) === shown) continue
    last.set(what, shown)
    recorder.say({ at: recorder.at, what, ...answer })
  }
})
