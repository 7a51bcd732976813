import { HttpResponse } from 'msw'
import { describe, expect, test } from 'vitest'
import {
  network,
  OK,
  GROUP,
  MEMBER,
  STAT,
  seen,
  appliance,
  look,
  present,
  useHandWritten,
} from './hand-written.js'

useHandWritten()

describe('readings', () => {
  test('objects instead of lists and texts instead of numbers are read', async () => {
    network.use(
      appliance({
        'config/servicegroup': () => HttpResponse.json({ ...OK, servicegroup: GROUP }),
        servicegroup_servicegroupmember_binding: () =>
          HttpResponse.json({
            ...OK,
            servicegroup_servicegroupmember_binding: { ...MEMBER, port: '80' },
          }),
        'stat/servicegroup': () =>
          HttpResponse.json({
            ...OK,
            servicegroup: {
              servicegroupmember: { ...STAT, primaryport: '80', svrestablishedconn: 3 },
            },
          }),
      }),
    )
    expect(await present()).toMatchObject({ own: 'ready', scopes: [{ state: 'read', active: 3 }] })
  })

  test('a reply without the key proves that no members exist', async () => {
    network.use(appliance({ servicegroup_servicegroupmember_binding: () => HttpResponse.json(OK) }))
    expect(await look()).toMatchObject({
      readings: [{ present: false }],
      pools: [{ pool: 'sg', serving: 0, total: 0 }],
    })
  })

  test.each([
    ['an empty body', () => new HttpResponse(null, { status: 200 })],
    ['a page of a proxy', () => HttpResponse.html('<p>Loading</p>')],
    ['a 404 without NITRO', () => HttpResponse.html('<p>Not found</p>', { status: 404 })],
    ['a list in place of a reply', () => HttpResponse.json([])],
  ])('%s proves nothing', async (_, answer) => {
    network.use(appliance({ servicegroup_servicegroupmember_binding: answer }))
    await expect(look()).rejects.toMatchObject({ code: 'MALFORMED_REPLY', retryable: true })
  })

  test('a member that stat leaves out is asked for alone, or is unread', async () => {
    const without = () => HttpResponse.json({ ...OK, servicegroup: [{ servicegroupname: 'sg' }] })
    network.use(appliance({ 'stat/servicegroup': without }))
    expect((await present()).scopes).toMatchObject([{ state: 'unread', inForce: true }])
    expect(seen.map(({ line }) => line)).toContain(
      'GET stat/servicegroupmember?args=servicegroupname:sg,servername:web1,port:80',
    )
    const alone = () =>
      HttpResponse.json({ ...OK, servicegroupmember: [{ ...STAT, svrestablishedconn: '2' }] })
    network.use(appliance({ 'stat/servicegroup': without, servicegroupmember: alone }))
    expect((await present()).scopes).toMatchObject([{ state: 'read', active: 2 }])
  })

  test('a build without the nested form is asked for each member', async () => {
    const no = () =>
      HttpResponse.json({ errorcode: 1090, message: 'No such argument' }, { status: 599 })
    const alone = () =>
      HttpResponse.json({ ...OK, servicegroupmember: [{ ...STAT, surgecount: '4' }] })
    network.use(appliance({ 'stat/servicegroup': no, servicegroupmember: alone }))
    expect((await present()).scopes).toMatchObject([{ state: 'read', queued: 4 }])
  })

  test('counts that still say UP are older than the disable', async () => {
    const member = { ...MEMBER, svrstate: 'GOING OUT OF SERVICE' }
    network.use(
      appliance({
        servicegroup_servicegroupmember_binding: () =>
          HttpResponse.json({ ...OK, servicegroup_servicegroupmember_binding: [member] }),
      }),
    )
    expect(await present()).toMatchObject({
      own: 'drain',
      scopes: [{ state: 'read', inForce: false }],
    })
  })

  test.each(['TROFS', 'TROFS_DOWN', 'OFS', 'DOWN', '5', 8, 'GOING OUT OF SERVICE', undefined])(
    'counts that say %s belong to a member going out of service',
    async (state) => {
      const member = { ...MEMBER, svrstate: 'DOWN WHEN GOING OUT OF SERVICE' }
      const servicegroupmember = [{ ...STAT, state }]
      network.use(
        appliance({
          servicegroup_servicegroupmember_binding: () =>
            HttpResponse.json({ ...OK, servicegroup_servicegroupmember_binding: [member] }),
          'stat/servicegroup': () =>
            HttpResponse.json({ ...OK, servicegroup: [{ servicegroupmember }] }),
        }),
      )
      expect(await present()).toMatchObject({
        own: 'drain',
        health: 'down',
        scopes: [{ inForce: true }],
      })
    },
  )

  test.each(['NS_EMPTY_STR', 'Unknown', ''])('the state %j gives no reading', async (svrstate) => {
    network.use(
      appliance({
        servicegroup_servicegroupmember_binding: () =>
          HttpResponse.json({
            ...OK,
            servicegroup_servicegroupmember_binding: [{ ...MEMBER, svrstate }],
          }),
      }),
    )
    expect(await present()).toMatchObject({
      own: 'unknown',
      serves: false,
      scopes: [{ inForce: false }],
    })
  })

  test.each([
    ['ENABLED', 'cuts'],
    ['DISABLED', 'gentle'],
    [undefined, 'unknown'],
  ])('with downStateFlush %s a disable is %s', async (downstateflush, maint) => {
    network.use(
      appliance({
        'config/servicegroup': () =>
          HttpResponse.json({ ...OK, servicegroup: [{ ...GROUP, downstateflush }] }),
      }),
    )
    expect((await present()).maint).toBe(maint)
  })

  test('counts from across a change of role are read again, or not believed', async () => {
    let asked = 0
    network.use(
      appliance({
        system: () =>
          HttpResponse.json({ ...OK, system: [{ starttime: `boot ${Math.min(++asked, 3)}` }] }),
      }),
    )
    expect((await present()).scopes[0]?.incarnation).toContain('boot 3')
    network.use(
      appliance({
        system: () => HttpResponse.json({ ...OK, system: [{ starttime: `boot ${++asked}` }] }),
      }),
    )
    await expect(look()).rejects.toMatchObject({ code: 'UNREACHABLE', retryable: true })
  })

  test('a user who may not look at the pair drains, unverified', async () => {
    const no = () =>
      HttpResponse.json({ errorcode: 2138, message: 'Not authorized' }, { status: 403 })
    network.use(appliance({ hanode: no, system: no, clusterinstance: no }))
    expect((await present()).unverified).toMatch(/allow 'show ha node'/)
  })

  test('a build without pairs is a single node', async () => {
    const no = () =>
      HttpResponse.json({ errorcode: 1232, message: 'Invalid object name' }, { status: 400 })
    network.use(appliance({ hanode: no, system: no, clusterinstance: no }))
    expect((await present()).unverified).toBeUndefined()
  })

  test('the role is understood in any spelling, in the configuration too', async () => {
    network.use(
      appliance({
        'stat/hanode': () =>
          HttpResponse.json({
            ...OK,
            hanode: [{ hacurstatus: 'yes', hacurmasterstate: 'StaySecondary' }],
          }),
      }),
    )
    await expect(look()).rejects.toThrow(/secondary node of its pair/)
    network.use(
      appliance({
        'stat/hanode': () => HttpResponse.json(OK),
        'config/hanode': () =>
          HttpResponse.json({
            ...OK,
            hanode: { id: '0', ipaddress: '10.0.0.11', state: 'PRIMARY' },
          }),
      }),
    )
    expect((await present()).scopes[0]?.scope).toBe('10.0.0.11')
  })
})
