import { describe, expect, test } from 'vitest'
import { fakeClock } from 'drainable/testing'
import type { Secret } from '../../../src/provider/option-schemas.js'
import { Credentials, SharedLogin } from '../../../src/kit/login.js'
import { eventually } from '../../support/eventually.js'

function setUp(password: Secret = 'p4ss', right = 'p4ss') {
  const clock = fakeClock()
  const stop = new AbortController()
  const sent: string[] = []
  const credentials = new Credentials({
    provider: 'lb',
    subject: 'https://lb',
    username: 'ops',
    password,
  })
  const log = (fresh = false): Promise<string> =>
    credentials.use(
      { clock, signal: stop.signal },
      (value) => {
        sent.push(value)
        return Promise.resolve(value === right ? 'in' : `no entry with ${value}`)
      },
      (reply) => (reply === 'in' ? undefined : reply),
      fresh,
    )
  return { clock, stop, sent, credentials, log }
}

describe('a password', () => {
  test('that was refused is not sent again for 30 s, then for 5 min each', async () => {
    const { clock, sent, log } = setUp('wrong')
    expect(await log()).toBe('no entry with wrong')
    await expect(log()).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
      provider: 'lb',
      message:
        'https://lb: login as \'ops\': "no entry with ***"; the same password is not sent again for 30 s, so that the account is not locked',
    })
    await clock.advance(29_999)
    await expect(log()).rejects.toThrow('for 1 ms')
    await clock.advance(1)
    await log()
    expect(sent).toHaveLength(2)
    await clock.advance(299_999)
    await expect(log()).rejects.toThrow()
    await clock.advance(1)
    await log()
    await clock.advance(299_999)
    await expect(log()).rejects.toThrow()
    expect(sent).toHaveLength(3)
  })

  test('that rotates is sent at once if the last one was refused', async () => {
    const values = ['old', 'p4ss', 'p4ss']
    const { sent, log } = setUp(() => values.shift() ?? '')
    expect(await log()).toBe('in')
    expect(sent).toEqual(['old', 'p4ss'])
  })

  test('is kept until it is refused, or a login wants a new one', async () => {
    let asked = 0
    const { log } = setUp(() => {
      asked += 1
      return 'p4ss'
    })
    await log()
    await log()
    expect(asked).toBe(1)
    await log(true)
    expect(asked).toBe(2)
  })

  test('is fetched once for all simultaneous requests', async () => {
    let asked = 0
    let give: (value: string) => void = () => undefined
    const { sent, log } = setUp(() => {
      asked += 1
      return new Promise<string>((resolve) => (give = resolve))
    })
    const both = Promise.all([log(), log()])
    give('p4ss')
    await both
    expect(asked).toBe(1)
    expect(sent).toEqual(['p4ss', 'p4ss'])
  })

  test('that never comes delays no call that gives up', async () => {
    const { stop, sent, log } = setUp(() => new Promise<string>(() => undefined))
    const run = log()
    stop.abort(new Error('given up'))
    await expect(run).rejects.toThrow('given up')
    expect(sent).toEqual([])
  })

  test('that never comes is named, and asked for again by the next call', async () => {
    let asked = 0
    const { clock, log, sent } = setUp(() => {
      asked += 1
      return asked === 1 ? new Promise<string>(() => undefined) : 'p4ss'
    })
    await expect(clock.runUntil(log(), 30_000)).rejects.toThrow(
      'no answer from the function password within 20 s',
    )
    expect([await log(), sent]).toEqual(['in', ['p4ss']])
  })

  test('is blacked out, even within a header, until eight others came', async () => {
    const { credentials, log } = setUp()
    await log()
    credentials.hide('b3BzOnA0c3M=')
    expect(credentials.clean('got p4ss and b3BzOnA0c3M=')).toBe('got *** and ***')
    for (let i = 0; i < 20; i++) credentials.hide(`token-${i}`)
    expect(credentials.clean('token-19 token-12')).toBe('*** ***')
  })
})

/** Logins that are let in one by one. */
function door(heedsAbort = true) {
  const clock = fakeClock()
  const attempts: { signal: AbortSignal; open: (v: string) => void; shut: (e: Error) => void }[] =
    []
  const login = new SharedLogin<string>(
    ({ signal }) =>
      new Promise((open, shut) => {
        attempts.push({ signal, open, shut })
        if (heedsAbort) signal.addEventListener('abort', () => shut(signal.reason as Error))
      }),
  )
  const ask = (stop = new AbortController()) => ({
    stop,
    got: login.get({ clock, signal: stop.signal }),
  })
  return { attempts, login, ask, clock }
}

describe('a login', () => {
  test('is made once for all, and again only once it was forgotten', async () => {
    const { attempts, login, ask } = door()
    const [a, b] = [ask(), ask()]
    attempts[0]?.open('t1')
    expect(await Promise.all([a.got, b.got])).toEqual(['t1', 't1'])
    expect(await ask().got).toBe('t1')
    login.forget('t0')
    expect(login.held).toBe('t1')
    login.forget('t1')
    const again = ask()
    attempts[1]?.open('t2')
    expect(await again.got).toBe('t2')
    expect(attempts).toHaveLength(2)
  })

  test('goes on while one call waits, and is given up after the last', async () => {
    const { attempts, ask, clock } = door()
    const [a, b] = [ask(), ask()]
    a.stop.abort(new Error('a leaves'))
    await expect(a.got).rejects.toThrow('a leaves')
    expect(attempts[0]?.signal.aborted).toBe(false)
    b.stop.abort(new Error('b leaves'))
    await expect(b.got).rejects.toThrow('b leaves')
    await clock.advance(1_999)
    expect(attempts[0]?.signal.aborted).toBe(false)
    await clock.advance(1)
    expect(attempts[0]?.signal.aborted).toBe(true)
  })

  test('without a waiting call leaves no session open', async () => {
    const { attempts, login, ask } = door()
    const { stop, got } = ask()
    stop.abort(new Error('leaves'))
    await expect(got).rejects.toThrow('leaves')
    const ended = login.end()
    attempts[0]?.open('t')
    expect(await ended).toBe('t')
  })

  test('without a waiting call is used by the next one within its time', async () => {
    const { attempts, ask, clock } = door()
    const first = ask()
    first.stop.abort(new Error('leaves'))
    await expect(first.got).rejects.toThrow('leaves')
    await clock.advance(1_000)
    const second = ask()
    await clock.advance(999)
    expect(attempts).toHaveLength(1)
    await clock.advance(1)
    await eventually(() => expect(attempts).toHaveLength(2))
    attempts[1]?.open('t')
    expect(await second.got).toBe('t')
  })

  test('given up by the last call does not end the next one', async () => {
    const { attempts, ask, clock } = door(false)
    const first = ask()
    first.stop.abort(new Error('first leaves'))
    await expect(first.got).rejects.toThrow('first leaves')
    await clock.advance(2_000)
    const second = ask()
    expect(attempts).toHaveLength(1)
    attempts[0]?.shut(new Error('first leaves'))
    await eventually(() => expect(attempts).toHaveLength(2))
    attempts[1]?.open('t2')
    expect(await second.got).toBe('t2')
  })

  test('that fails is told to all waiting calls, and retried by the next', async () => {
    const { attempts, login, ask } = door()
    const [a, b] = [ask(), ask()]
    attempts[0]?.shut(new Error('no'))
    await expect(a.got).rejects.toThrow('no')
    await expect(b.got).rejects.toThrow('no')
    const c = ask()
    attempts[1]?.open('t')
    expect(await c.got).toBe('t')
    expect(await login.end()).toBe('t')
    expect(login.held).toBeUndefined()
  })
})
