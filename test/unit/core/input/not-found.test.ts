import { describe, expect, test } from 'vitest'
import { combineProviders, drain, select, type DrainableProvider, type Target } from 'drainable'
import { fakeProvider } from 'drainable/testing'

const pools = { web: ['web1', 'web2'], Api: ['api1'] }

async function said(call: Promise<unknown>): Promise<{ code: string; message: string }> {
  return call.then(
    () => ({ code: 'none', message: 'found' }),
    (error: unknown) => error as { code: string; message: string },
  )
}

const missed = (lb: DrainableProvider, target: unknown) => said(drain(lb, target as Target))

describe('a target that matches nothing', () => {
  test.each<[Target, string]>([
    [{ pool: 'web', member: 'Web1' }, "pool web has no such member, did you mean 'web1'?"],
    [{ pool: 'web', member: 'wbe2' }, "did you mean 'web2'?"],
    [{ pool: 'web', member: 'db' }, "pool web has no such member, its members are 'web1', 'web2'"],
    [{ pool: 'api', member: 'api1' }, "no such pool or member, did you mean 'Api'?"],
    [{ pool: 'db', member: 'x' }, "no such pool or member, the pools are 'web', 'Api'"],
    [{ pool: 'wbe' }, "there is no pool wbe, did you mean 'web'?"],
    [{ pool: 'database' }, "there is no pool database, the pools are 'web', 'Api'"],
    [{ address: '10.9.9.9' }, 'no member has address 10.9.9.9; members have '],
    [{ address: 'localhost' }, 'names are not resolved: give the address that the balancer has'],
  ])('%j: %s', async (target, words) => {
    const error = await missed(fakeProvider({ pools }), target)
    expect(error.code).toBe('NOT_FOUND')
    expect(error.message).toContain(words)
  })

  test('a name of any length is repeated in short', async () => {
    const error = await missed(fakeProvider({ pools }), { pool: 'web', member: 'x'.repeat(99_999) })
    expect(error.message).toMatch(/^web\/x+… was not found: /)
    expect(error.message.length).toBeLessThan(1_000)
  })

  test('an address with another port is told the ports there are', async () => {
    const lb = fakeProvider({ pools })
    const [web1] = await select(lb, { pool: 'web', member: 'web1' })
    const { address = '', port = 0 } = web1?.present === true ? web1 : {}
    const error = await missed(lb, { address, port: port + 1 })
    expect(error.message).toContain(`port ${port + 1}, its ports are '${port}'`)
  })

  test('a failed look for the message leaves the error as it is', async () => {
    const lb = fakeProvider({ pools })
    const observe = lb.observe.bind(lb)
    lb.observe = (refs, ctx) =>
      refs === 'all' ? Promise.reject(new Error('busy')) : observe(refs, ctx)
    const error = await missed(lb, { pool: 'web', member: 'web9' })
    expect(error).toMatchObject({ code: 'NOT_FOUND' })
    expect(error.message).toBe(
      'web/web9 was not found: pool web has no such member, check the spelling',
    )
  })
})

describe('a malformed target', () => {
  test.each<[unknown, string]>([
    ['web/web1', "write { pool: 'web', member: 'web1' }"],
    ['web1', 'is a text; expected { pool, member }, a list of those'],
    ['everything', "'all' is every member, in select() alone"],
    [{ backend: 'web', server: 'web1' }, "'backend' is called 'pool' here, 'server' is called"],
    [{ ip: '10.0.0.1' }, "'ip' is called 'address' here"],
    [
      { pool: 'web', members: ['web1'] },
      "unknown 'members'; write a list: [{ pool, member }, ...]",
    ],
    [{ pool: 'web', name: 'web1' }, "'name' is called 'member' here"],
    [{ pool: 'web', address: '10.0.0.1' }, 'an address is looked for in every pool'],
    [{ address: '10.0.0.1', port: 0 }, 'port: expected a number from 1 to 65535'],
    [{ address: '10.0.0.1', port: 70_000 }, 'port: expected a number from 1 to 65535'],
    [{ address: '10.0.0.1', port: '80' }, 'port: expected a number from 1 to 65535'],
    [['web/web1'], "[0] is a text; write { pool: 'web', member: 'web1' }"],
    [[{ pool: 'web' }], '[0] is no member; a list has { pool, member } only'],
    [[{ pool: 'web', member: 5 }], '[0].member: expected a text, found a number'],
    [Promise.resolve({ pool: 'web' }), 'is a promise; await it first'],
    [{ pool: 'web', member: '' }, 'member: is empty'],
    [[], 'is empty; expected { pool, member }'],
    [{ address: 'http://10.0.0.1:80' }, 'is a URL; give the address and the port apart'],
    [{ address: '10.0.0.0/8' }, 'is a range, expected one address'],
  ])('%j: %s', async (target, words) => {
    const error = await missed(fakeProvider({ pools }), target)
    expect(error.code).toBe('INVALID_OPTIONS')
    expect(error.message).toContain(words)
  })

  test('a reading is told to give its ref', async () => {
    const lb = fakeProvider({ pools })
    const readings = await select(lb, { pool: 'web' })
    expect((await missed(lb, readings[0])).message).toContain(
      'is a reading of select(); give its ref',
    )
    expect((await missed(lb, readings)).message).toContain('readings.map(({ ref }) => ref)')
  })

  test("'all' is for select() alone", async () => {
    const error = await said(drain(fakeProvider({ pools }), 'all' as unknown as Target))
    expect(error.message).toContain("'all' is a target of select() alone")
  })

  test.each<Target>([
    { balancer: 'edge', pool: 'web', member: 'web1' },
    { balancer: 'edge', pool: 'web' },
    { balancer: 'edge', address: '10.0.0.1' },
    [{ balancer: 'edge', pool: 'web', member: 'web1' }],
  ])('%j names no balancer where there is one only', async (target) => {
    const lb = fakeProvider({ pools })
    const error = await said(drain(lb, target, { timeout: '2s' }))
    expect(error.code).toBe('INVALID_OPTIONS')
    expect(error.message).toContain("balancer: 'edge' is a key of combineProviders()")
    expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('a pool of several balancers is told how to name one of them', async () => {
    const all = combineProviders({ a: fakeProvider({ pools }), b: fakeProvider({ pools }) })
    const error = await missed(all, { pool: 'web' })
    expect(error.message).toContain("name one, as in { balancer: 'a', ... }; a roll takes a list")
  })
})

describe('a misplaced argument of a verb', () => {
  test('a factory that was not called is told', async () => {
    const error = await missed(fakeProvider as unknown as DrainableProvider, { pool: 'web' })
    expect(error.message).toContain('found a function: call it, and pass what it gives')
  })

  test('an action in the place of the policy is told', async () => {
    const action = (() => Promise.resolve()) as never
    const error = await said(
      drain(fakeProvider({ pools }), { pool: 'web', member: 'web1' }, action),
    )
    expect(error.message).toContain('the action comes after them: drain(lb, target,')
  })
})
