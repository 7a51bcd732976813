import { HttpResponse } from 'msw'
import { describe, expect, test } from 'vitest'
import {
  network,
  WEB1,
  OK,
  GROUP,
  MEMBER,
  seen,
  appliance,
  ctx,
  provider,
  useHandWritten,
} from './hand-written.js'

useHandWritten()

describe('changes', () => {
  const drainWeb1 = [{ kind: 'hold', ref: WEB1, to: 'drain' }] as const

  /** Says UP until a disable came, whatever became of its answer. */
  function draining(answer: () => Response, after = 'GOING OUT OF SERVICE') {
    let svrstate = 'UP'
    return appliance({
      servicegroup_servicegroupmember_binding: () =>
        HttpResponse.json({
          ...OK,
          servicegroup_servicegroupmember_binding: [{ ...MEMBER, svrstate }],
        }),
      'config/servicegroup': ({ line }) => {
        if (!line.startsWith('POST')) return HttpResponse.json({ ...OK, servicegroup: [GROUP] })
        svrstate = after
        return answer()
      },
    })
  }

  const disables = () => seen.filter(({ line }) => line.includes('action=disable'))

  test('an empty answer is a success', async () => {
    network.use(draining(() => new HttpResponse(null, { status: 200 })))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
  })

  test.each([
    ['a lost connection', () => HttpResponse.error()],
    ['a page of a proxy', () => HttpResponse.html('<p>?</p>')],
    [
      'no word of the packet engine',
      () => HttpResponse.json({ errorcode: 1198, message: 'No response' }, { status: 599 }),
    ],
  ])('%s leads to a look, which shows that it is done', async (_, answer) => {
    network.use(draining(answer))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
    expect(disables()).toHaveLength(1)
  })

  test('a change that the look does not show is of unknown outcome', async () => {
    network.use(draining(() => HttpResponse.error(), 'UP'))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'unknown', error: { code: 'CONNECTION_LOST' } },
    ])
    expect(disables()).toHaveLength(1)
  })

  test.each([
    [257, 599, 'REJECTED'],
    [2138, 403, 'FORBIDDEN'],
    [258, 404, 'NOT_FOUND'],
    [368, 599, 'CONFLICT'],
    [1203, 599, 'REJECTED'],
  ])('errorcode %i is refused with %s', async (errorcode, status, code) => {
    network.use(draining(() => HttpResponse.json({ errorcode, message: 'No' }, { status }), 'UP'))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'rejected', error: { code } }])
  })

  test('a warning that this is a secondary is a refusal, other warnings not', async () => {
    const warn = (errorcode: number) => () =>
      HttpResponse.json({ errorcode, message: 'w', severity: 'WARNING' }, { status: 209 })
    network.use(draining(warn(1028)))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'rejected', error: { code: 'CONFLICT' } },
    ])
    network.use(draining(warn(1067)))
    await using other = provider()
    expect(await other.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
  })

  test('a change that the other node did not hear of is done, with a hint', async () => {
    const message = 'Command propagation failed'
    network.use(draining(() => HttpResponse.json({ errorcode: 347, message }, { status: 599 })))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
    const { readings } = await adc.observe([WEB1], ctx)
    expect(JSON.stringify(readings)).toContain('did not hear of a change')
  })

  test('a disable without grace that only drains is not refused, nor done', async () => {
    network.use(draining(() => HttpResponse.json(OK), 'GOING OUT OF SERVICE'))
    await using adc = provider()
    const [result] = await adc.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx)
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('GOING OUT OF SERVICE'))
    expect(disables()).toHaveLength(1)
  })

  test('a busy appliance is asked four times in all', async () => {
    network.use(
      draining(
        () => HttpResponse.json({ errorcode: 272, message: 'Device busy' }, { status: 599 }),
        'UP',
      ),
    )
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'rejected', error: { retryable: true } },
    ])
    expect(disables()).toHaveLength(4)
  })

  test('a group member is never disabled without server and port', async () => {
    network.use(draining(() => HttpResponse.json(OK)))
    await using adc = provider()
    const identity = '|'
    await adc.apply(
      [
        { kind: 'hold', ref: { pool: 'sg', member: '' }, to: 'drain' },
        { kind: 'hold', ref: { pool: 'sg', member: ':80' }, to: 'drain' },
        { kind: 'hold', ref: { pool: 'sg', member: 'sg' }, to: 'maint' },
        { kind: 'hold', ref: WEB1, to: 'drain', identity },
        { kind: 'hold', ref: WEB1, to: 'drain' },
      ],
      ctx,
    )
    expect(disables().map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      {
        servicegroup: {
          servicegroupname: 'sg',
          servername: 'web1',
          port: 80,
          delay: 0,
          graceful: 'YES',
        },
      },
    ])
  })
})
