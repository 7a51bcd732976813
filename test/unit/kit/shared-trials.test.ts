import { describe, expect, test } from 'vitest'
import { fakeClock } from 'drainable/testing'
import { Credentials, SharedTrials } from '../../../src/kit/login.js'

type Reply = 'ok' | 'refused'

/** Units of one pair under one user, whose replies a test gives. */
function pair() {
  const clock = fakeClock()
  const trials = new SharedTrials()
  const ctx = { clock, signal: new AbortController().signal }
  const unit = (subject: string) => {
    const sent: ((reply: Reply) => void)[] = []
    const options = { provider: 'p', subject, username: 'u', password: 'secret', trials }
    const credentials = new Credentials(options)
    const use = () =>
      credentials.use(
        ctx,
        () => new Promise<Reply>((resolve) => void sent.push(resolve)),
        (reply) => (reply === 'refused' ? 'no' : undefined),
      )
    return { sent, use }
  }
  return { clock, one: unit('one'), two: unit('two') }
}

/** Every promise that can go on has gone on. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

describe('one password for the units of a pair', () => {
  test('refused by one is not tried at the other', async () => {
    const { one, two } = pair()
    const [first, second] = [one.use(), two.use()]
    const refused = expect(second).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    await settled()
    expect(two.sent).toEqual([])
    one.sent[0]!('refused')
    expect(await first).toBe('refused')
    await refused
    expect(two.sent).toEqual([])
  })

  test('is tried at the other unit first when the time is over', async () => {
    const { clock, one, two } = pair()
    const first = one.use()
    await settled()
    one.sent[0]!('refused')
    await first
    await clock.advance(30_000)
    await expect(one.use()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    const second = two.use()
    await settled()
    two.sent[0]!('ok')
    expect(await second).toBe('ok')
  })

  test('accepted by one unit goes on while the other refuses it', async () => {
    const { one, two } = pair()
    const first = one.use()
    await settled()
    one.sent[0]!('ok')
    await first
    const second = two.use()
    await settled()
    two.sent[0]!('refused')
    expect(await second).toBe('refused')
    const again = one.use()
    await settled()
    one.sent[1]!('ok')
    expect(await again).toBe('ok')
  })

  test('delays a unit by a second while the other hangs', async () => {
    const { clock, one, two } = pair()
    void one.use()
    const second = two.use()
    await clock.advance(999)
    expect(two.sent).toEqual([])
    await clock.advance(1)
    await settled()
    two.sent[0]!('ok')
    expect(await second).toBe('ok')
  })
})
