import type { F5BigipOptions } from 'drainable/f5-bigip'
import type { FakeOptions } from 'drainable/testing/f5-bigip'
import { describe, expect, test } from 'vitest'
import { ctx, lines, present, read, rig as anyRig, until, WEB1, WEB2, type Rig } from './rig.js'

/** Nothing hangs here: a limit would only end what a loaded machine does slowly. */
const rig = (fake: FakeOptions = {}, options: Partial<F5BigipOptions> = {}): Promise<Rig> =>
  anyRig(fake, { callTimeout: '1m', ...options })

const PAIR = { pair: { bothActive: true } } as const
const no = {
  code: 400,
  message: '01070734:3: Configuration error: no',
  errorStack: [],
  apiError: 3,
}
const refuse = (match: RegExp, more: object = {}) =>
  ({ match, how: 'status', status: 400, body: no, ...more }) as const

const SITE = { name: 'site:80', fqdn: 'www.example.com' }
const MADE = { name: '_auto_192.0.2.7:80', fqdn: 'www.example.com', ephemeral: true }
const OTHER = { name: '_auto_192.0.2.8:80', fqdn: 'www.example.com', ephemeral: true }
const site = { pool: 'web', member: SITE.name }
const made = { pool: '/Common/web', member: `/Common/${MADE.name}` }
const other = { pool: '/Common/web', member: `/Common/${OTHER.name}` }

describe.concurrent('a change that the second active unit refuses', () => {
  test('is put back on the first if it is a hold, and refused', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
    expect([one, two].map((unit) => it.fake.state(WEB1, unit))).toEqual(['ready', 'ready'])
  })

  test('is put back to the drain that was there if it is an escalation', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx())
    expect(result).toMatchObject({ status: 'rejected' })
    expect([one, two].map((unit) => it.fake.state(WEB1, unit))).toEqual(['drain', 'drain'])
  })

  test('is put back to the expected drain if it is a restore', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    const [result] = await it.lb.apply(
      [{ kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' }],
      ctx(),
    )
    expect(result).toMatchObject({ status: 'rejected' })
    expect([one, two].map((unit) => it.fake.state(WEB1, unit))).toEqual(['drain', 'drain'])
  })

  test('is unknown if it is a restore that would go back to maint', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx())
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    const [result] = await it.lb.apply(
      [{ kind: 'restore', ref: WEB1, expect: 'maint', to: 'ready' }],
      ctx(),
    )
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'REJECTED' } })
    expect([one, two].map((unit) => it.fake.state(WEB1, unit))).toEqual(['ready', 'maint'])
  })

  test('is unknown if the first can not be put back', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    it.fake.fail(refuse(/^PATCH .*members/, { unit: one, skip: 1 }))
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'unknown' })
    expect(result).toHaveProperty('error.message', expect.stringContaining('could not be put back'))
    expect(it.fake.state(WEB1, one)).toBe('drain')
  })

  test('is unknown if the first says that nothing is there', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    const missing = {
      code: 404,
      message: '01020036:3: The requested Pool (/Common/web) was not found.',
    }
    const readBack = { match: /^GET .*members\//, unit: one! }
    it.fake.fail({ ...readBack, how: 'status', status: 404, body: missing })
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'REJECTED' } })
  })

  test('is left alone if another client changed it meanwhile', async () => {
    await using it = await rig({ ...PAIR, latency: 30 })
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    const results = it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    await until('the second unit is asked', () =>
      it.fake.requests.some(({ method, unit }) => method === 'PATCH' && unit === two),
    )
    await it.fake.setBehind(WEB1, 'maint')
    expect(await results).toMatchObject([{ status: 'rejected' }])
    expect(it.fake.state(WEB1, one)).toBe('maint')
  })

  test('does not affect other members of the batch', async () => {
    const names = [1, 2, 3, 4].map((n) => `10.0.0.${n}:80`)
    await using it = await rig({ ...PAIR, pools: { web: names } })
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*10\.0\.0\.3/, { unit: two }))
    const refs = names.map((name) => ({ pool: '/Common/web', member: `/Common/${name}` }))
    const results = await it.lb.apply(
      refs.map((ref) => ({ kind: 'hold', ref, to: 'drain' })),
      ctx(),
    )
    const wished = ['applied', 'applied', 'rejected', 'applied']
    expect(results.map(({ status }) => status)).toEqual(wished)
    for (const unit of [one, two]) {
      const states = refs.map((ref) => it.fake.state(ref, unit))
      expect(states).toEqual(['drain', 'drain', 'ready', 'drain'])
    }
  })

  test('is put back if it is of a node, too', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*node/, { unit: two }))
    const node = { pool: '@nodes', member: '10.0.0.1' }
    const [result] = await it.lb.apply([{ kind: 'hold', ref: node, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'rejected' })
    const sent = it.fake.requests.filter((r) => r.method === 'PATCH' && r.unit === one)
    expect(sent.map(({ body }) => body)).toEqual([
      { session: 'user-disabled', state: 'user-up' },
      { session: 'user-enabled', state: 'user-up' },
    ])
    expect((await present(it.lb, node)).own).toBe('ready')
  })

  test('is pushed and saved when it is put back', async () => {
    await using it = await rig(
      { pair: { bothActive: true } },
      { configSync: { group: 'dg1' }, save: true },
    )
    const [, two] = it.fake.units
    it.fake.fail(refuse(/^PATCH .*members/, { unit: two }))
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(lines(it.fake)).toContain('POST /mgmt/tm/cm')
    const [second] = await it.lb.apply([{ kind: 'hold', ref: WEB2, to: 'drain' }], ctx())
    expect(second).not.toMatchObject({ error: { code: 'CONFLICT' } })
  })
})

describe.concurrent('a removal that the second active unit refuses', () => {
  test('is not called refused, since the member has left the first', async () => {
    await using it = await rig(PAIR)
    const [, two] = it.fake.units
    it.fake.fail(refuse(/^DELETE .*members/, { unit: two }))
    const [result] = await it.lb.apply([{ kind: 'remove', ref: WEB1 }], ctx())
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'REJECTED' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('removed at'))
    expect((await read(it.lb, WEB1)).present).toBe(true)
    const [again] = await it.lb.apply([{ kind: 'remove', ref: WEB1 }], ctx())
    expect(again).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
  })
})

describe.concurrent('an addition on two active units', () => {
  const ref = { pool: 'web', member: '10.0.0.9:80' }
  const add = { kind: 'add', ref, address: '10.0.0.9', port: 80 } as const

  test('that the second refuses is not called refused', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    it.fake.fail(refuse(/^POST .*members/, { unit: two }))
    const [result] = await it.lb.apply([add], ctx())
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'REJECTED' } })
    expect(it.fake.state(ref, one)).toBe('ready')
  })

  test('that sync with each other is done, since the second has it already', async () => {
    await using it = await rig({ pair: { bothActive: true, autoSync: true } })
    const [result] = await it.lb.apply([add], ctx())
    expect(result).toMatchObject({ status: 'applied' })
    for (const unit of it.fake.units) expect(it.fake.state(ref, unit)).toBe('ready')
  })
})

describe.concurrent('a cut that the second active unit refuses', () => {
  test('is done with what was cut, and reports what was not', async () => {
    await using it = await rig(PAIR)
    const [one, two] = it.fake.units
    await it.fake.occupy(WEB1, 3, one)
    await it.fake.occupy(WEB1, 4, two)
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    it.fake.fail(refuse(/^DELETE .*connection/, { unit: two }))
    const [result] = await it.lb.apply([{ kind: 'terminate', ref: WEB1 }], ctx())
    expect(result).toEqual({ ref: WEB1, status: 'applied', terminated: 3, atMost: true })
    expect((await present(it.lb, WEB1)).hints?.join()).toContain('were not cut')
  })

  test('is refused if the first refuses it', async () => {
    await using it = await rig(PAIR)
    const [one] = it.fake.units
    it.fake.fail(refuse(/^DELETE .*connection/, { unit: one }))
    const [result] = await it.lb.apply([{ kind: 'terminate', ref: WEB1 }], ctx())
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
  })
})

describe.concurrent('an FQDN template whose copies refuse', () => {
  const strict = { ...MADE, strict: true }

  test('is held by the template if the hold reaches the copies anyway', async () => {
    await using it = await rig({ pools: { web: [SITE, strict] }, fqdnInherits: true })
    const [result] = await it.lb.apply([{ kind: 'hold', ref: site, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'applied' })
    expect(it.fake.state(made)).toBe('drain')
  })

  test('has a hold put back that does not reach the copies', async () => {
    await using it = await rig({ pools: { web: [SITE, strict] }, fqdnInherits: false })
    const [result] = await it.lb.apply([{ kind: 'hold', ref: site, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'rejected' })
    expect(it.fake.state(site)).toBe('ready')
    expect((await present(it.lb, site)).serves).toBe(true)
  })

  test('leaves a copy drained that another client had drained', async () => {
    await using it = await rig({ ...PAIR, pools: { web: [SITE, MADE, OTHER] }, fqdnInherits: true })
    const [one, two] = it.fake.units
    await it.fake.setBehind(other, 'drain')
    it.fake.fail(refuse(/^PATCH /, { unit: two }))
    const [result] = await it.lb.apply([{ kind: 'hold', ref: site, to: 'drain' }], ctx())
    expect(result).toMatchObject({ status: 'rejected' })
    const states = [site, made, other].map((ref) => it.fake.state(ref, one))
    expect(states).toEqual(['ready', 'ready', 'drain'])
  })

  test('cuts nothing by an address that is in doubt', async () => {
    const strange = { ...OTHER, address: 'any6' }
    await using it = await rig({ pools: { web: [SITE, MADE, strange] } })
    await it.fake.occupy(made)
    const [result] = await it.lb.apply([{ kind: 'terminate', ref: site }], ctx())
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'UNSUPPORTED' } })
    expect(it.fake.load(made).curConns).toBe(1)
  })
})
