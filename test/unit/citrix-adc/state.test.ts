import { describe, expect, test } from 'vitest'
import { toMember } from '../../../src/adapters/citrix-adc/codec/rows.js'
import { Memory } from '../../../src/adapters/citrix-adc/read/memory.js'
import { JsonValue } from '../../../src/kit/json.js'
import { isReleased, ownState } from '../../../src/adapters/citrix-adc/read/reading.js'

type Row = Readonly<Record<string, unknown>>

function entry(svrstate: string, row: Row = {}) {
  return toMember(
    'sg',
    new JsonValue(
      { servername: 'web1', ip: '10.0.0.1', port: 80, svrstate, ...row },
      { provider: 'citrix-adc', what: 'GET' },
    ),
  )
}

/** Fields of 13.x. */
const GRACEFUL = { state: 'DISABLED', graceful: 'YES', delay: 0 }
const PLAIN = { state: 'DISABLED', graceful: 'NO', delay: 0 }
const ENABLED = { state: 'ENABLED', graceful: 'NO', delay: 0 }
const SUBJECT = entry('UP').subject
const NODE = 'node A'

describe('a state without a change of ours in memory', () => {
  test.each([
    ['UP', {}, false, { own: 'ready' }],
    ['DOWN', {}, false, { own: 'ready' }],
    ['UP', {}, true, { own: 'ready' }],
    ['GOING OUT OF SERVICE', {}, false, { own: 'drain' }],
    ['GOING OUT OF SERVICE', GRACEFUL, false, { own: 'drain' }],
    ['DOWN WHEN GOING OUT OF SERVICE', {}, false, { own: 'drain' }],
    ['GOING OUT OF SERVICE', ENABLED, false, { own: 'drain' }],
    [
      'GOING OUT OF SERVICE',
      { ...ENABLED, trofsreason: 'monitor' },
      false,
      { own: 'ready', inherited: 'drain' },
    ],
    ['GOING OUT OF SERVICE', {}, true, { own: 'ready', inherited: 'drain' }],
    ['OUT OF SERVICE', {}, false, { own: 'maint' }],
    ['OUT OF SERVICE', PLAIN, false, { own: 'maint' }],
    ['OUT OF SERVICE', GRACEFUL, false, { own: 'drain' }],
    ['OUT OF SERVICE', {}, true, { own: 'ready', inherited: 'maint' }],
    ['DISABLED', {}, false, { own: 'maint' }],
    ['DOWN', PLAIN, false, { own: 'unknown' }],
    ['UP', GRACEFUL, false, { own: 'unknown' }],
    ['Unknown', {}, false, { own: 'unknown' }],
    ['SOMETHING NEW', {}, false, { own: 'unknown' }],
  ])('%s %j, parent disabled: %s', (svrstate, row, parent, own) => {
    expect(ownState(entry(svrstate, row), undefined, parent)).toEqual(own)
  })
})

test('our drain of a member whose server was disabled before is ours', () => {
  const memory = new Memory()
  memory.did(SUBJECT, 'drain', false)
  const one = entry('OUT OF SERVICE', GRACEFUL)
  const ours = memory.recall(one, 1_000, NODE)
  expect(ownState(one, ours, true)).toEqual({ own: 'drain', inherited: 'maint' })
})

test('a member that was only seen in TROFS is not ours once its server is disabled', () => {
  const memory = new Memory()
  memory.recall(entry('GOING OUT OF SERVICE', GRACEFUL), 1_000, NODE)
  const one = entry('OUT OF SERVICE', GRACEFUL)
  const ours = memory.recall(one, 1_001, NODE)
  expect(ownState(one, ours, true)).toEqual({ own: 'ready', inherited: 'maint' })
})

describe('a state with a change of ours in memory', () => {
  /** A drain of ours, read back as `rows` one after the other. */
  function after(
    as: 'drain' | 'maint',
    rows: readonly [string, Row][],
    nodes: readonly string[] = [],
  ) {
    const memory = new Memory()
    memory.did(SUBJECT, as, as === 'drain')
    return rows.map(([svrstate, row], i) => {
      const one = entry(svrstate, row)
      const ours = memory.recall(one, 1_000 + i, nodes[i] ?? NODE)
      const traits = {
        servicetype: 'HTTP',
        flush: true,
        autoscale: '',
        monitored: true,
        disabled: false,
      }
      const released = isReleased({ entry: one, traits, ours, serverDisabled: false })
      return [ownState(one, ours, false).own, released]
    })
  }

  test.each([
    ['new builds', GRACEFUL],
    ['old builds', {}],
    ['builds that always say NO', PLAIN],
  ])('our drain goes out of service by itself: %s', (_, row) => {
    expect(
      after('drain', [
        ['GOING OUT OF SERVICE', row],
        ['OUT OF SERVICE', row],
        ['OUT OF SERVICE', row],
      ]),
    ).toEqual([
      ['drain', false],
      ['drain', true],
      ['drain', true],
    ])
  })

  test('DOWN and DISABLED after our drain is drained, but not by its word', () => {
    expect(
      after('drain', [
        ['GOING OUT OF SERVICE', GRACEFUL],
        ['DOWN', GRACEFUL],
        ['UP', GRACEFUL],
      ]),
    ).toEqual([
      ['drain', false],
      ['drain', false],
      ['unknown', false],
    ])
  })

  test('a plain disable of another client over it is that client’s', () => {
    expect(
      after('drain', [
        ['GOING OUT OF SERVICE', GRACEFUL],
        ['OUT OF SERVICE', PLAIN],
      ]),
    ).toEqual([
      ['drain', false],
      ['maint', false],
    ])
  })

  test('after it was in service again, OUT OF SERVICE is another client’s', () => {
    expect(
      after('drain', [
        ['OUT OF SERVICE', {}],
        ['DOWN', {}],
        ['OUT OF SERVICE', {}],
      ]),
    ).toEqual([
      ['drain', true],
      ['ready', false],
      ['maint', false],
    ])
  })

  test('a drain that outlived a reboot is ours, but its word is not believed', () => {
    expect(
      after(
        'drain',
        [
          ['OUT OF SERVICE', GRACEFUL],
          ['OUT OF SERVICE', PLAIN],
        ],
        ['node A, boot 1', 'node A, boot 2'],
      ),
    ).toEqual([
      ['drain', true],
      ['drain', false],
    ])
  })

  test('a reading asked for before the change does not know of it', () => {
    const memory = new Memory()
    const stamp = memory.stamp()
    memory.did(SUBJECT, 'drain', true)
    expect(memory.recall(entry('UP'), stamp, NODE)).toMatchObject({ as: 'drain' })
    expect(memory.recall(entry('UP'), memory.stamp(), NODE)).toBeUndefined()
  })

  test('a foreign drain seen in TROFS is still a drain once it is out', () => {
    const memory = new Memory()
    memory.recall(entry('GOING OUT OF SERVICE'), 1, NODE)
    const ours = memory.recall(entry('OUT OF SERVICE'), 2, NODE)
    expect(ownState(entry('OUT OF SERVICE'), ours, false)).toEqual({ own: 'drain' })
    expect(ours?.graceful).toBe(false)
  })
})

describe('the quiet time of a member', () => {
  const idle = { active: 0, queued: 0, arrivals: 7 }

  test('is counted from the last sign of work', () => {
    const memory = new Memory()
    expect(memory.restedFor(SUBJECT, 100)).toBe(0)
    memory.counted(SUBJECT, idle, 100)
    memory.counted(SUBJECT, idle, 200)
    expect(memory.restedFor(SUBJECT, 250)).toBe(150)
    memory.counted(SUBJECT, { ...idle, arrivals: 8 }, 300)
    expect(memory.restedFor(SUBJECT, 350)).toBe(50)
    memory.counted(SUBJECT, { ...idle, active: 1, arrivals: 8 }, 400)
    expect(memory.restedFor(SUBJECT, 450)).toBe(50)
    memory.counted(SUBJECT, undefined, 500)
    expect(memory.restedFor(SUBJECT, 550)).toBe(50)
  })
})
